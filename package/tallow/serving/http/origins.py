"""Requests of web pages. Browsers send those of any page; the server's own pages and those of `--cors` are answered."""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")  # they make nothing compute, and other pages cannot read the answers
OWN_SITES = ("same-origin", "none")  # "none": the user's own action


def foreign_origin(method: str, headers: Headers, allowed: Collection[str]) -> str | None:
    """Return the site whose page sends a request that it may not send, or None. Only browsers name a site.

    The browser's own judgement counts most: behind a proxy, `Host` may not be the name that it knows.

    Source:  https://www.w3.org/TR/fetch-metadata and RFC 6454, section 7
    Args:    allowed: origins that may call the server; "*" for any
    """
    origin = headers.get("origin")
    if method in SAFE_METHODS or "*" in allowed or origin in allowed:
        return None
    site = headers.get("sec-fetch-site")
    if site is None:
        is_own = origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()
    else:
        is_own = site in OWN_SITES and origin != "null"
    return None if is_own else origin or site
