"""From the outbox to the broker. A message is a hint: nothing here decides what is to be done."""
