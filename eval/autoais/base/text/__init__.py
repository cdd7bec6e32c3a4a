"""Text processing: sentences, words, Wikipedia headings, excerpts, and which sentences make claims."""
