"""Text: sentences, words, Wikipedia headings, and which sentences claim something."""
