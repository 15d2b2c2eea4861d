"""The routes: thin, each a question to the layers below."""
