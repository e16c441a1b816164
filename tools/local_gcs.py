"""Runs a command for which `gs://bucket` is a folder in this process's memory, through TensorFlow's own client of GCS.

    python tools/local_gcs.py bash -c "python run.py pretrain --output gs://bucket/runs/demo"

The command runs in a network of its own (Linux's `unshare`), where the two hosts of Google's that TensorFlow asks are
this machine and nothing else can be reached. What is served is the part of the JSON API that TensorFlow uses
(https://cloud.google.com/storage/docs/json_api/v1): objects, lists of prefixes, resumable uploads and rewriting.
Whatever is below `gs://bucket/readonly/` is refused, and there is no other bucket.
"""

import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

HOSTS = ("www.googleapis.com", "storage.googleapis.com")
BUCKET, READ_ONLY = "bucket", "readonly/"

objects = {}  # {name: (bytes, seconds since 1970)}
uploads = {}  # {session: name}
lock = threading.Lock()


class Store(BaseHTTPRequestHandler):
    """One connection; each method answers one kind of request."""

    protocol_version = "HTTP/1.1"

    def answer_any(self):
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
        content = self._content()
        for pattern, answer in (
            (r"/upload/storage/v1/b/([^/]+)/o", self._begin_upload),
            (r"/session/()(\w+)", self._upload),
            (r"/storage/v1/b/([^/]+)/o/([^/]+)/rewriteTo/b/[^/]+/o/([^/]+)", self._rewrite),
            (r"/storage/v1/b/([^/]+)/o/([^/]+)", self._remove if self.command == "DELETE" else self._describe),
            (r"/storage/v1/b/([^/]+)/o", self._list),
            (r"/storage/v1/b/([^/]+)", lambda **_: self._reply(200, {"location": "EU"})),
            (r"/([^/]+)/(.+)", self._read),
        ):
            match = re.fullmatch(pattern, url.path)
            if match:
                bucket, *names = map(unquote, match.groups())
                if bucket not in ("", BUCKET):
                    self._reply(404)
                else:
                    with lock:
                        answer(*names, query=query, content=content)
                return
        self._reply(501)

    do_GET = do_POST = do_PUT = do_DELETE = answer_any

    def _begin_upload(self, query, content):
        name = query["name"]
        if name.startswith(READ_ONLY):
            self._reply(403)
        elif query["uploadType"] == "resumable":
            uploads[session := uuid.uuid4().hex] = name
            self._reply(200, {}, Location=f"https://{HOSTS[0]}/session/{session}")
        elif "ifGenerationMatch" in query and name in objects:
            self._reply(412)
        else:
            objects[name] = content, time.time()
            self._reply(200, {})

    def _upload(self, session, query, content):
        objects[uploads.pop(session)] = content, time.time()
        self._reply(200, {})

    def _rewrite(self, name, target, query, content):
        if name in objects:
            objects[target] = objects[name][0], time.time()
        self._reply(200 if name in objects else 404, {"done": True})

    def _remove(self, name, query, content):
        self._reply(204 if objects.pop(name, None) else 404)

    def _describe(self, name, query, content):
        if name not in objects:
            self._reply(404)
            return
        content, changed = objects[name]
        updated = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(changed))
        self._reply(200, {"size": str(len(content)), "generation": str(int(1e6 * changed)), "updated": updated})

    def _list(self, query, content):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        items, prefixes = [], set()
        for name in sorted(name for name in objects if name.startswith(prefix)):
            first, found, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if found:
                prefixes.add(prefix + first + delimiter)
            else:
                items.append({"name": name})
        items = items[: int(query.get("maxResults", len(items)))]
        found = {"items": items, "prefixes": sorted(prefixes)}
        self._reply(200, {key: value for key, value in found.items() if value})

    def _read(self, name, query, content):
        if name not in objects:
            self._reply(404)
            return
        content, _ = objects[name]
        first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "bytes=0-")).groups()
        part = content[int(first) : int(last) + 1 if last else None]
        self._reply(206 if part else 416, part)

    def _content(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _reply(self, status, body=b"", **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": len(body)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing."""


def inside(command):
    """Serves and runs the command, in the network of its own; returns its exit status."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        hosts, key, certificate = (os.path.join(folder, name) for name in ("hosts", "key.pem", "certificate.pem"))
        with open("/etc/hosts", encoding="utf-8") as old, open(hosts, "w", encoding="utf-8") as new:
            new.write(old.read() + f"\n127.0.0.1 {' '.join(HOSTS)}\n")
        subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
        names = ",".join(f"DNS:{host}" for host in HOSTS)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate]
            + ["-days", "2", "-subj", f"/CN={HOSTS[0]}", "-addext", f"subjectAltName={names}"],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        server = ThreadingHTTPServer(("127.0.0.1", 443), Store)
        secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        secure.load_cert_chain(certificate, key)
        server.socket = secure.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = {"CURL_CA_BUNDLE": certificate, "GOOGLE_AUTH_TOKEN_FOR_TESTING": "none", "NO_GCE_CHECK": "true"}
        return subprocess.run(command, env={**os.environ, **client}, check=False).returncode


def main():
    if sys.argv[1:2] == ["--inside"]:
        sys.exit(inside(sys.argv[2:]))
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    alone = ["unshare", "--user", "--map-root-user", "--mount", "--net"]
    sys.exit(subprocess.run([*alone, sys.executable, __file__, "--inside", *sys.argv[1:]], check=False).returncode)


if __name__ == "__main__":
    main()
