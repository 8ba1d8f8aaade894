"""A person at the console without a browser: Flask's test client with a session, for tests that look at answers."""

from __future__ import annotations

import re
from io import BytesIO

from werkzeug.test import TestResponse

from coupon_workers.access.api_key import create_key
from coupon_workers.access.console_session import open_session
from tests.support.http_shop import Shop
from tests.support.written_rows import writes_of
from web.console.guard import COOKIE, TOKEN_FIELD


class Visitor:
    """Logged in by a new key of ``scopes``, in English unless another ``language`` is asked for."""

    def __init__(self, shop: Shop, *scopes: str, language: str = "en", name: str = "Zoe") -> None:
        self.key = create_key(shop.services.engine, name=name, scopes=scopes)
        self.client = shop.app.test_client()
        self._engine = shop.services.engine
        self._headers = {"Accept-Language": language}
        token = open_session(shop.services, self.key.record.key_id)
        self.client.set_cookie(COOKIE, token, path="/console")

    def get(self, path: str, **headers: str) -> TestResponse:
        """The answer to a look at a page of the console, which writes nothing; ``path`` is without ``/console``."""
        with writes_of(self._engine) as written:
            answer = self.client.get(f"/console{path}", headers=self._headers | headers)
        assert [] == written
        return answer

    def page(self, path: str) -> str:
        """A page that must be there, as HTML."""
        answer = self.get(path)
        assert 200 == answer.status_code, answer.text
        return answer.text

    def post(self, path: str, **fields: str) -> TestResponse:
        """Send a form of the session."""
        return self.client.post(f"/console{path}", data={TOKEN_FIELD: self.form_token} | fields, headers=self._headers)

    def send_file(self, path: str, content: bytes, file_name: str, **fields: str) -> TestResponse:
        """Send a form of the session with a file in its field ``file``."""
        data = {**fields, "file": (BytesIO(content), file_name)}
        address = f"/console{path}?{TOKEN_FIELD}={self.form_token}"
        return self.client.post(address, data=data, headers=self._headers, content_type="multipart/form-data")

    def done(self, path: str, **fields: str) -> str:
        """Send a form that must be taken; where it leads."""
        answer = self.post(path, **fields)
        assert 303 == answer.status_code, answer.text
        assert "/console/login" not in answer.location
        return answer.location

    @property
    def form_token(self) -> str:
        """What the pages of this session carry in their forms."""
        found = re.search(rf'name="{TOKEN_FIELD}" value="([^"]+)"', self.client.get("/console/nowhere").text)
        assert found is not None
        return found[1]
