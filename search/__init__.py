"""Exact search over DAGs."""
