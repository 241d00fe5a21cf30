# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""One keep-alive connection pool to one API server: TLS, proxy, credentials; bytes in, bytes out."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._core.errors import OperationError
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube import library
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.connection import Connection
from ansible_collections.slurm_ops.kubernetes.plugins.module_utils._kube.errors import Unreachable

CONNECT_TIMEOUT = 10.0  # seconds
POOL_SIZE = 16  # as many writes at once as gave the shortest time (500 patches: 15 s over 1, 1.9 s over 16)
USER_AGENT = "slurm_ops.kubernetes"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: status, headers and body of one call."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionFailed(Exception):
    """No answer to one attempt; ``sent`` tells whether the request may have reached the server."""

    def __init__(self, text: str, *, sent: bool, fatal: Unreachable | None = None) -> None:
        super().__init__(text)
        self.sent = sent
        self.fatal = fatal


class Transport:
    """A urllib3 pool for one Connection. Safe to use from several threads."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._urllib3 = library.transport()
        self._pool = self._open_pool()
        self._headers = {"User-Agent": USER_AGENT, "Accept": "application/json", **authentication_headers(connection)}

    def _open_pool(self) -> Any:
        connection = self.connection
        options: dict[str, Any] = {"maxsize": POOL_SIZE, "retries": False}
        if connection.host.startswith("https:"):
            options["ssl_context"] = ssl_context(connection)
            if connection.server_name:
                options["server_hostname"] = connection.server_name
                options["assert_hostname"] = connection.server_name
            if not connection.verify:
                # Asked for by the user; a warning at each call would tell nothing new.
                self._urllib3.disable_warnings(self._urllib3.exceptions.InsecureRequestWarning)
                options["cert_reqs"] = "CERT_NONE"
                options["assert_hostname"] = False
        if proxy_for(connection):
            return self._urllib3.ProxyManager(connection.proxy, **options)
        return self._urllib3.PoolManager(**options)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout: float,
    ) -> Reply:
        """Make one attempt. Raises ConnectionFailed when there is no whole answer within ``timeout`` seconds."""
        response = self._open(method, path, body, headers, timeout, preload=True)
        return Reply(response.status, response.headers, response.data)

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str], timeout: float) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Open a GET whose body is read piece by piece; ``timeout`` bounds each silence between pieces."""
        response = self._open("GET", path, None, headers, timeout, preload=False)
        try:
            yield response.status, self._pieces(response)
        finally:
            response.close()

    def _pieces(self, response: Any) -> Iterator[bytes]:
        errors = self._urllib3.exceptions
        try:
            # read1 gives what has come so far; stream() would wait until a whole block is full.
            while piece := response.read1(65536):
                yield piece
        except (errors.HTTPError, OSError) as error:
            raise ConnectionFailed(str(error), sent=True) from error

    def _open(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout: float, preload: bool
    ) -> Any:
        errors = self._urllib3.exceptions
        try:
            return self._pool.request(
                method,
                self.connection.host + path,
                body=body,
                headers={**self._headers, **headers},
                timeout=self._urllib3.Timeout(connect=min(CONNECT_TIMEOUT, timeout), read=timeout),
                redirect=False,
                preload_content=preload,
            )
        except errors.SSLError as error:
            raise ConnectionFailed(str(error), sent=False, fatal=_tls_failure(self.connection, error)) from error
        except (errors.NewConnectionError, errors.ConnectTimeoutError, errors.ProxyError) as error:
            raise ConnectionFailed(_plain(error), sent=False) from error
        except errors.ReadTimeoutError as error:
            raise ConnectionFailed(f"no answer in {timeout:.0f} s", sent=True) from error
        except (errors.HTTPError, OSError) as error:
            raise ConnectionFailed(_plain(error), sent=True) from error

    def close(self) -> None:
        """Close every connection of the pool."""
        self._pool.clear()


def authentication_headers(connection: Connection) -> dict[str, str]:
    """Return the headers that say who we are, and whom we act for."""
    headers = {}
    if connection.authorization:
        headers["Authorization"] = connection.authorization
    if connection.impersonate_user:
        headers["Impersonate-User"] = connection.impersonate_user
    if connection.impersonate_groups:
        # Several groups are several headers; a list in one is how the API server reads a repeated header that a
        # client joined, so only one group is safe this way and more need urllib3's HTTPHeaderDict.
        multiple = library.transport().HTTPHeaderDict(headers)
        for group in connection.impersonate_groups:
            multiple.add("Impersonate-Group", group)
        return multiple  # type: ignore[no-any-return]
    return headers


def proxy_for(connection: Connection) -> str | None:
    """Return the proxy to use for this host, honouring the no_proxy list."""
    if not connection.proxy:
        return None
    host = urlsplit(connection.host).hostname or ""
    for entry in (connection.no_proxy or "").split(","):
        entry = entry.strip().lstrip("*").lower()
        if entry and (host.lower() == entry.lstrip(".") or host.lower().endswith("." + entry.lstrip("."))):
            return None
    return connection.proxy


def ssl_context(connection: Connection) -> ssl.SSLContext:
    """Build the TLS settings: the cluster's CA (else the machine's), a client certificate if there is one."""
    # Not create_default_context: it reads the machine's whole CA bundle first (20 ms), and from Python 3.13 on it
    # asks for extensions that the CA of many a cluster lacks.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if not connection.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif connection.ca_data:
            context.load_verify_locations(cadata=connection.ca_data.decode("ascii", "replace"))
        elif connection.ca_file:
            context.load_verify_locations(cafile=connection.ca_file)
        else:
            context.load_default_certs()
    except (ssl.SSLError, OSError, ValueError) as error:
        raise _bad_file("CA certificate", connection.ca_file, error) from error
    try:
        with _certificate_files(connection) as (cert_file, key_file):
            if cert_file:
                context.load_cert_chain(cert_file, key_file)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise _bad_file("client certificate", connection.cert_file, error) from error
    return context


@contextmanager
def _certificate_files(connection: Connection) -> Iterator[tuple[str | None, str | None]]:
    """Give the client certificate and key as files, which is all that the ssl module takes."""
    if not (connection.cert_data or connection.key_data):
        yield connection.cert_file, connection.key_file
        return
    with tempfile.TemporaryDirectory(prefix="slurm-ops-") as directory:  # made with mode 0700

        def written(name: str, data: bytes | None, path: str | None) -> str | None:
            if data is None:
                return path
            target = os.path.join(directory, name)
            with open(target, "wb") as stream:
                stream.write(data)
            return target

        yield (
            written("cert.pem", connection.cert_data, connection.cert_file),
            written("key.pem", connection.key_data, connection.key_file),
        )


def _bad_file(what: str, path: str | None, error: Exception) -> OperationError:
    return OperationError(
        f"Cannot use the {what} {path or 'in the kubeconfig'}: {error}.", reason="InvalidConfiguration", hint=""
    )


def _plain(error: BaseException) -> str:
    """Return the innermost reason, without the objects' addresses that urllib3 puts in front of it."""
    inner = [item for item in (*error.args, error.__cause__, error.__context__) if isinstance(item, Exception)]
    for item in inner:
        if isinstance(item, OSError) and (item.strerror or str(item)):
            return item.strerror or str(item)
    return str(error).rpartition(">: ")[2] or str(error) or type(error).__name__


def _tls_failure(connection: Connection, error: Exception) -> Unreachable:
    text = str(error)
    if "certificate verify failed" in text or "CERTIFICATE_VERIFY_FAILED" in text:
        detail = text.partition("certificate verify failed: ")[2].partition(" (_ssl")[0] or "it cannot be verified"
        msg = f"The certificate of the API server {connection.host} is not trusted: {detail}."
        hint = "Give the cluster's CA with ca_cert (or in the kubeconfig), or check the address."
    elif "doesn't match" in text or "Hostname mismatch" in text:
        msg = f"The certificate of the API server {connection.host} is for another name: {text}."
        hint = "Use the name in the certificate, or set tls-server-name in the kubeconfig."
    elif "WRONG_VERSION_NUMBER" in text or "wrong version number" in text:
        msg = f"{connection.host} does not speak TLS."
        hint = "Use http:// or another port."
    else:
        msg = f"TLS to the API server {connection.host} fails: {text}."
        hint = "Check ca_cert, client_cert and client_key."
    return Unreachable(msg, reason="TlsFailure", hint=hint)
