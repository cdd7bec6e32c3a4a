"""What the reports of benchmarks and of collections share: figures and the page."""
