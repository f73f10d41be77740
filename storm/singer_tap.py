"""A tap for people: pages of 1,000, newest first, from the day before the newest date of the last run."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus

from singer_sdk import RESTStream, Tap
from singer_sdk import typing as th
from singer_sdk.authenticators import APIKeyAuthenticator
from singer_sdk.pagination import PageNumberPaginator

PAGE_SIZE = 1000


class FullPagePaginator(PageNumberPaginator):
    """Asks for another page while pages are full."""

    def has_more(self, response):
        return len(response.json()["data"]) == PAGE_SIZE


class People(RESTStream):
    name = "people"
    path = "/api/v1/public/people"
    primary_keys = ("id",)
    replication_key = "discoveredAt"
    is_sorted = False
    records_jsonpath = "$.data[*]"
    extra_retry_statuses = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.LOCKED)
    schema = th.PropertiesList(
        th.Property("id", th.StringType, required=True),
        th.Property("email", th.StringType),
        th.Property("company", th.StringType),
        th.Property("companySize", th.IntegerType),
        th.Property("sources", th.ArrayType(th.StringType)),
        th.Property("discoveredAt", th.DateTimeType),
    ).to_dict()

    @property
    def url_base(self):
        return self.config["base_url"]

    @property
    def authenticator(self):
        return APIKeyAuthenticator(key="X-API-Key", value=self.config["api_key"], location="header")

    @property
    def timeout(self):
        return 60

    def get_new_paginator(self):
        return FullPagePaginator(1)

    def get_url_params(self, context, next_page_token):
        since = self.get_starting_timestamp(context) - timedelta(days=1)
        return {"limit": PAGE_SIZE, "page": next_page_token, "discovered_from": f"{since:%Y-%m-%d}"}

    def backoff_wait_generator(self):
        """Waits as Retry-After says, else 2, 4, 8 and 16 seconds."""
        tries = iter(range(1, 10))

        def seconds(error):
            said = getattr(getattr(error, "response", None), "headers", {}).get("Retry-After", "")
            return int(said) if said.isdigit() else 2 ** next(tries)

        return self.backoff_runtime(value=seconds)


class TapContacts(Tap):
    name = "tap-contacts"
    config_jsonschema = th.PropertiesList(
        th.Property("base_url", th.StringType, required=True),
        th.Property("api_key", th.StringType, required=True, secret=True),
        th.Property("start_date", th.DateTimeType, required=True),
    ).to_dict()

    def discover_streams(self):
        return [People(self)]


if __name__ == "__main__":
    TapContacts.cli()
