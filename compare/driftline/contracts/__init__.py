"""The values that cross a boundary: child to worker, worker to service, service to reader. Nothing else crosses.

Each module holds one boundary. No logic lives here beyond validation.
"""
