"""What /metrics says: the state of the queue, read from the database at each scrape, and what this process served."""
