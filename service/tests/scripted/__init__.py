"""A service without children: requests, a worker that says what is written down here, and the world around them."""
