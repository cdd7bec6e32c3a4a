"""Meta-evaluation: agreement of judges with human labels, and of annotators with each other."""
