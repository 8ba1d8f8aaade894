"""A certificate of its own making for ``localhost``, good for a hundred years and for these tests only."""

from __future__ import annotations

import ssl
from pathlib import Path

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBlDCCATugAwIBAgIUFPMEGeQzn8uN5lnGAhn656UaUjIwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyOTIyNTgyNloYDzIxMjYxMTA1
MjI1ODI2WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASOIDylRYrT1WUptpeTsgQZhL/ObSL1Ewq6eI52MGsYcL/CMSK++JvH
JmJDSoOQfhQ8NhDuc9/pzN+42dodJnyfo2kwZzAdBgNVHQ4EFgQUtlHmq+smNIto
QSU0Q7/0VpHnNeUwHwYDVR0jBBgwFoAUtlHmq+smNItoQSU0Q7/0VpHnNeUwFAYD
VR0RBA0wC4IJbG9jYWxob3N0MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwID
RwAwRAIgfe696OMi8vODXSe1c9pRXISjDOvHm6+DXHR3Z7vMGMMCIEqITHryAOrF
fjD8qDUF4bWWFRkMqtRIYAAzRYGEgL0m
-----END CERTIFICATE-----
"""

# A key that everybody may know: nothing but these tests believes it.
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnKz9RC7pvvB57Xx/
uvSfcQDt497K8feSzIdA5V8/EWahRANCAASOIDylRYrT1WUptpeTsgQZhL/ObSL1
Ewq6eI52MGsYcL/CMSK++JvHJmJDSoOQfhQ8NhDuc9/pzN+42dodJnyf
-----END PRIVATE KEY-----
"""


def write_certificate(folder: Path) -> Path:
    """The certificate as a file, for ``SSL_CERT_FILE``."""
    path = folder / "certificate.pem"
    path.write_text(CERTIFICATE, encoding="ascii")
    return path


def server_context(folder: Path) -> ssl.SSLContext:
    """What a server shows itself by."""
    both = folder / "server.pem"
    both.write_text(KEY + CERTIFICATE, encoding="ascii")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context
