"""Meta-evaluation: how far judges agree with people, and people with each other."""
