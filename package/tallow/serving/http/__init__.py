"""The HTTP interface of `tallow serve`: OpenAI's API over the engines of `tallow.serving`, on Starlette."""
