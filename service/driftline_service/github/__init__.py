"""GitHub App: webhooks come in and are kept, a desk of its own answers them, comments and check runs follow the runs."""
