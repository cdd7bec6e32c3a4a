"""What the web pages of `rag` share: look, templates, security headers, CSRF tokens, limits and the server.

Nothing is fetched from another host, no script or style is inline, and all text is escaped.
"""
