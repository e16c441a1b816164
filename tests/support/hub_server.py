"""A local server like the Hugging Face hub: the two endpoints that a fetch asks."""

import contextlib
import hashlib
import http.server
import json
import re
import threading
import urllib.parse

import huggingface_hub.constants
import huggingface_hub.file_download

import keras_bert

_IN_LFS = re.compile(r"\.(safetensors|bin|parquet|data-\d{5}-of-\d{5})$")
_FILE = re.compile(r"/(.+?)/resolve/([^/]+)/(.+)")
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class Repository:
    """Files at commits, and names for these.

    Attributes:
        refs: `{branch or tag: commit}`.
        access: "open", "gated" (everybody sees the files, nobody gets them) or a token that must be shown.
        sent_instead: `{file: bytes}` that are sent instead of what is listed.
        cuts: `{file: [bytes after which the connection is closed, one number per request]}`.
    """

    def __init__(self, files):
        self.commits, self.refs = {}, {}
        self.access = "open"
        self.sent_instead, self.cuts = {}, {}
        self.publish(files)

    def publish(self, files, branch="main"):
        """A new commit of `{file: bytes}`; returns its hash."""
        commit = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.commits[commit] = files
        self.refs[branch] = commit
        return commit

    def commit_of(self, revision):
        return self.refs.get(revision, revision if revision in self.commits else None)


class HubServer(http.server.ThreadingHTTPServer):
    """Serves `repositories`, `{name: Repository}`, a data set's as `datasets/ORG/NAME`.

    `requests` are those received, as ("GET", path).
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories, self.requests = {}, []
        self.is_down = False

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def fetched(self):
        """The names of the files whose bytes were asked for, in order."""
        asked = (_FILE.fullmatch(path) for method, path in self.requests if method == "GET")
        return [found.group(3) for found in asked if found]

    def handle_error(self, request, client_address):
        """Says nothing: some tests are about clients that go away."""


@contextlib.contextmanager
def hub_server():
    server = HubServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def own_cache(path, monkeypatch):
    """Gives this process a cache of its own and no token; returns the cache's path."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", path)
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", f"{path}-token")
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return path


def point_to(url, monkeypatch):
    """Makes a server the hub of this process, as HF_ENDPOINT does if it is set before the first import."""
    forget_sessions()
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", url)
    for module in (huggingface_hub.constants, huggingface_hub.file_download):  # Before version 1, both.
        template = url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(module, "HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)


def forget_sessions():
    """Lets huggingface_hub look again at whether it is offline: before version 1, a session looks when it is made."""
    getattr(huggingface_hub.utils, "reset_sessions", bool)()


def load_from_hub(name, files, tmp_path, monkeypatch):
    """What `load` gives for `hf:NAME`, a repository with these files, `{file: bytes}`."""
    own_cache(str(tmp_path / "cache"), monkeypatch)
    with hub_server() as server:
        point_to(server.url, monkeypatch)
        server.repositories[name] = Repository(files)
        return keras_bert.load(f"hf:{name}")


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Says nothing."""

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def _answer(self):
        path = urllib.parse.urlsplit(self.path).path  # A revision's own slashes are quoted in it.
        self.server.requests.append((self.command, path))
        if self.server.is_down:
            return self._refuse(503, "", "down for maintenance")
        api = re.fullmatch(r"/api/(?:models/)?(.+?)(?:/revision/(.+))?", path)
        file = _FILE.fullmatch(path)
        if not api and not file:
            return self._refuse(404, "", "no such page")
        name, revision = (api or file).group(1), urllib.parse.unquote((api or file).group(2) or "main")
        repository = self.server.repositories.get(name)
        shown = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if repository is None or repository.access not in ("open", "gated", shown):
            return self._refuse(401, "RepoNotFound", "Repository not found")
        commit = repository.commit_of(revision)
        if commit is None:
            return self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if api:
            return self._send_listing(name, repository, commit)
        if repository.access == "gated":
            return self._refuse(403, "GatedRepo", "Access to this model is restricted.")
        if file.group(3) not in repository.commits[commit]:
            return self._refuse(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": commit})
        return self._send_file(repository, commit, file.group(3))

    def _send_listing(self, name, repository, commit):
        siblings = []
        for file, content in repository.commits[commit].items():
            listed = {"rfilename": file, "size": len(content), "blobId": _git_hash(content)}
            if _IN_LFS.search(file):
                listed["lfs"] = {"sha256": _sha256(content), "size": len(content), "pointerSize": 130}
            siblings.append(listed)
        body = {
            "_id": "0",
            "id": name,
            "modelId": name,
            "private": False,
            "sha": commit,
            "siblings": siblings,
            "tags": [],
            "downloads": 0,
            "likes": 0,
        }
        self._send(200, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _send_file(self, repository, commit, file):
        content = repository.commits[commit][file]
        headers = {"X-Repo-Commit": commit, "ETag": f'"{_git_hash(content)}"', "Accept-Ranges": "bytes"}
        if _IN_LFS.search(file):
            headers |= {"X-Linked-ETag": f'"{_sha256(content)}"', "X-Linked-Size": str(len(content))}
        content = repository.sent_instead.get(file, content)
        wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
        status, first = 200, 0
        if wanted:
            status, first = 206, int(wanted.group(1))
            headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
        cuts = repository.cuts.get(file)
        cut = cuts.pop(0) if cuts and self.command == "GET" else None
        self._send(status, content[first:], headers, cut)

    def _refuse(self, status, code, message, more=None):
        self._send(status, b"", {"X-Error-Code": code, "X-Error-Message": message, **(more or {})})

    def _send(self, status, body, headers, cut=None):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:cut])
        if cut is not None:
            self.wfile.flush()
            self.close_connection = True


def _sha256(content):
    return hashlib.sha256(content).hexdigest()


def _git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
