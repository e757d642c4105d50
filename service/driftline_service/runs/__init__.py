"""A run's life: states, plan, submission, reconciler. The only package that changes a run's or a job's state."""
