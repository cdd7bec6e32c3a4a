"""Questions to cited answers: systems, generators, language models, attribution, export."""
