"""Evaluations that people report: read, stored, promoted to baselines, shown in history. Nothing is measured here."""
