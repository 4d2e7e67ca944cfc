"""The simulation-study harness."""
