"""`auth` in YAML: what it becomes; and that a secret which is written down is refused, and never repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

import sources
from mediator.catalog.login import BasicLogin, ClientLogin, KeyLogin, Login
from mediator.catalog.model import Catalog
from mediator.catalog.secret import Secret
from mediator.errors import CatalogError, Refused
from sources import BearerAuth, KeyAuth, Relation, Source, scan
from sources.schema import json_schema
from wrappers import JsonReader, Template

BASE = "https://shop.example/api"
GOOD = """\
sources:
  shop:
    base: https://shop.example/api
    auth: {kind: key, header: X-Api-Key, key_env: SHOP_KEY}
relations:
  offers:
    fields: {isbn: string}
    methods:
      by_isbn:
        mirrors: [shop]
        required: [isbn]
        request: {path: /offers, query: {isbn: "{isbn}"}, headers: {Accept: application/json}}
        reply: {kind: json}
"""
AUTH = "{kind: key, header: X-Api-Key, key_env: SHOP_KEY}"
OAUTH = "{kind: oauth2, token_url: 'https://login.example/t', client_id: me, client_secret_env: S"
HUNTER = "hunter2"


def declared(tmp_path: Path, text: str, **variables: str) -> Catalog:
    (tmp_path / "shop.yaml").write_text(text)
    return sources.load(tmp_path, variables)


def login_of(tmp_path: Path, auth: str) -> Login | None:
    return declared(tmp_path, GOOD.replace(AUTH, auth)).sources["shop"].login


@pytest.mark.parametrize(
    ("auth", "login"),
    [
        (AUTH, KeyLogin(BASE, Secret("SHOP_KEY", what="key"), "X-Api-Key")),
        (
            "{kind: key, query: api_key, key_file: /run/key}",
            KeyLogin(BASE, Secret(file="/run/key", what="key"), query="api_key"),
        ),
        (
            "{kind: key, header: Authorization, prefix: Token, key_env: K}",
            KeyLogin(BASE, Secret("K", what="key"), "Authorization", prefix="Token"),
        ),
        (
            "{kind: basic, user: reader, password_env: P}",
            BasicLogin(BASE, "reader", Secret("P")),
        ),
        (
            "{kind: basic, user_file: /run/user}",
            BasicLogin(BASE, Secret(file="/run/user", what="user name")),
        ),
        (
            "{kind: bearer, token_env: T}",
            KeyLogin(BASE, Secret("T", what="token"), "Authorization", prefix="Bearer"),
        ),
        (
            OAUTH + "}",
            ClientLogin(BASE, "https://login.example/t", "me", Secret("S", what="client secret")),
        ),
        (
            OAUTH.replace("client_id: me", "client_id_env: ID")
            + ", scopes: [read, write], audience: api, extra: {tenant: t}, credentials: body}",
            ClientLogin(
                BASE,
                "https://login.example/t",
                Secret("ID", what="client id"),
                Secret("S", what="client secret"),
                (("scope", "read write"), ("audience", "api"), ("tenant", "t")),
                in_body=True,
            ),
        ),
        ("{kind: none}", None),
    ],
)
def test_what_is_declared_becomes_a_login(tmp_path: Path, auth: str, login: Login | None) -> None:
    assert login_of(tmp_path, auth) == login


def test_nothing_is_declared_and_nothing_is_sent(tmp_path: Path) -> None:
    text = GOOD.replace(f"    auth: {AUTH}\n", "")
    assert declared(tmp_path, text).sources["shop"].login is None
    assert declared(tmp_path, text).sources["shop"].secrets == ()


@pytest.mark.parametrize(
    ("auth", "said"),
    [
        (
            "{header: X-Api-Key, key_env: K}",
            ":4: sources.shop.auth: 'kind' is missing: add kind: none, key, basic,",
        ),
        (
            "{kind: apikey, key_env: K}",
            ":4: sources.shop.auth: Input tag 'apikey' found using 'kind' does not match",
        ),
        ("{kind: key, key_env: K}", "a key goes to one place: give header (such as X-Api-Key) or query"),
        ("{kind: key, header: A, query: b, key_env: K}", "a key goes to one place"),
        ("{kind: key, header: A}", ":4: sources.shop.auth: key is missing: add key_env or key_file"),
        (
            "{kind: key, header: A, key_env: K, key_file: /k}",
            "there are two of key_env and key_file: leave out one",
        ),
        ("{kind: key, header: 'A b', key_env: K}", "not a header that can carry a key: write its name"),
        ("{kind: key, header: Host, key_env: K}", "not a header that can carry a key"),
        ('{kind: key, header: A, prefix: "a\\r\\nb", key_env: K}', "the prefix has a line break or the like"),
        ("{kind: basic, password_env: P}", "user is missing: add user or user_env or user_file"),
        ("{kind: basic, user: a}", "password is missing: add password_env or password_file"),
        ("{kind: basic, user: a, user_env: U}", "there are two of user and user_env: leave out one of them"),
        ("{kind: basic, user: 'a:hunter2', password_env: P}", "a user's name has no colon and no line break"),
        ("{kind: bearer}", "token is missing: add token_env or token_file"),
        (
            "{kind: bearer, token: hunter2}",
            "auth.token: a secret is not written here: take 'token' out, and name an",
        ),
        (
            "{kind: key, header: A, key: hunter2}",
            "take 'key' out, and name an environment variable in key_env",
        ),
        ("{kind: basic, user: a, password: hunter2}", "name an environment variable in password_env"),
        (OAUTH + ", client_secret: hunter2}", "name an environment variable in client_secret_env"),
        ("{kind: bearer, tokenenv: T}", "unknown field 'tokenenv': did you mean 'token_env'?"),
        (
            "{kind: bearer, token_env: 'hunter2!'}",
            "token_env: the name of an environment variable goes here, not what",
        ),
        ("{kind: bearer, token_env: 'Bearer hunter2'}", "the name of an environment variable goes here"),
        ("{kind: bearer, token_env: 17}", "sources.shop.auth.token_env: Input should be a valid string"),
        ("Bearer hunter2", ":4: sources.shop.auth: "),
        ("[hunter2]", ":4: sources.shop.auth: "),
        (OAUTH.replace("https://", "ftp://") + "}", "auth.token_url: String should match pattern"),
        (
            OAUTH.replace("https://", "http://") + "}",
            "token_url: with http, anybody on the way could read the secret",
        ),
        (
            OAUTH.replace("https://", "https://me:hunter2@") + "}",
            "token_url: a name or a password is written here",
        ),
        (
            OAUTH.replace("/t'", "/t?client_secret=hunter2'") + "}",
            "'client_secret' has a secret in it: take it out",
        ),
        (
            OAUTH.replace("login.example", "login.example:port") + "}",
            "token_url: not an address: write one like",
        ),
        (OAUTH + ", scopes: ['read write']}", "a scope is one word: write scopes as a list of words"),
        (OAUTH + ", extra: {scope: read}}", "scope has a field of its own in 'auth', or is written for you"),
        (
            OAUTH + ", extra: {password: hunter2}}",
            "password looks like a secret: only the client's secret can be named",
        ),
        (OAUTH + ", credentials: both}", "credentials: Input should be 'header' or 'body'"),
        (
            OAUTH.replace("client_id: me, ", "") + "}",
            "client_id is missing: add client_id or client_id_env or",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_the_fix(tmp_path: Path, auth: str, said: str) -> None:
    with pytest.raises(CatalogError) as caught:
        login_of(tmp_path, auth)
    assert said in str(caught.value)
    assert ":4: sources.shop.auth" in str(caught.value)
    assert HUNTER not in str(caught.value)
    assert HUNTER not in repr(caught.value)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (
            "https://shop.example/api",
            "https://reader:hunter2@shop.example/api",
            ":3: sources.shop.base: a name or a password is written here: take it out, and declare auth: {kind: basic",
        ),
        (
            "https://shop.example/api",
            "https://hunter2@shop.example/api",
            "a name or a password is written here",
        ),
        (
            "https://shop.example/api",
            "https://shop.example/api?api_key=hunter2",
            "'api_key' has a secret in it: take it out, and declare auth: {kind: key, query: api_key, key_env: ...}",
        ),
        ("https://shop.example/api", "https://shop.example:x/api", "sources.shop.base: not an address"),
        (
            "https://shop.example/api",
            "http://shop.example/api",
            ":3: sources.shop.base: with http, anybody on the way could read the secret that 'auth' sends: write https",
        ),
        (
            "Accept: application/json",
            "Authorization: Bearer hunter2",
            ":12: relations.offers.methods.by_isbn.request.headers: 'Authorization' would have a secret written in it: "
            "take it out, and declare auth: {kind: bearer, token_env: ...} for the source, or kind: basic",
        ),
        ("Accept: application/json", "authorization: Basic hunter2", "would have a secret written in it"),
        (
            "Accept: application/json",
            "X-Shop-API-Key: hunter2",
            "declare auth: {kind: key, header: X-Shop-API-Key, key_env: ...} for the source",
        ),
        ("Accept: application/json", "X-Auth-Token: hunter2", "would have a secret written in it"),
        (
            'query: {isbn: "{isbn}"}',
            'query: {isbn: "{isbn}", apikey: hunter2}',
            ".request.query: 'apikey' would have a secret written in it: take it out, and declare auth: {kind: key,",
        ),
        (
            'query: {isbn: "{isbn}"}',
            'json: {isbn: "{isbn}", login: {client_secret: hunter2}}',
            ".request.json: 'client_secret' would have a secret written in it: take it out, and declare auth for",
        ),
        (
            'query: {isbn: "{isbn}"}',
            'form: {isbn: "{isbn}", password: hunter2}',
            ".request.form: 'password' would have a secret written in it",
        ),
        (
            "Accept: application/json",
            'x-api-key: "{isbn}"',
            "'x-api-key' is filled by the auth of 'shop': take it out",
        ),
    ],
)
def test_a_secret_that_is_written_down_is_refused(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    assert right in GOOD
    with pytest.raises(CatalogError) as caught:
        declared(tmp_path, GOOD.replace(right, wrong))
    assert said in str(caught.value)
    assert HUNTER not in str(caught.value)


def test_nor_may_it_come_as_a_variable(tmp_path: Path) -> None:
    """What is given with --set stands in the history of a shell, and in the list of processes."""
    with pytest.raises(CatalogError, match="would have a secret written in it"):
        declared(
            tmp_path,
            GOOD.replace("Accept: application/json", 'Authorization: "Bearer ${token}"'),
            token="hunter2",
        )


def test_a_parameter_that_auth_fills_stands_nowhere_else(tmp_path: Path) -> None:
    auth = "{kind: key, query: isbn, key_env: K}"
    with pytest.raises(
        CatalogError, match=r"by_isbn\.request: 'isbn' is filled by the auth of 'shop': take it out"
    ):
        declared(tmp_path, GOOD.replace(AUTH, auth))
    paged = GOOD.replace(AUTH, "{kind: key, query: page, key_env: K}") + "        pages: {param: page}\n"
    with pytest.raises(
        CatalogError, match=r"by_isbn\.pages: 'page' is filled by the auth of 'shop': take it out"
    ):
        declared(tmp_path, paged)


def test_what_only_sounds_like_a_secret_is_allowed(tmp_path: Path) -> None:
    headers = "headers: {X-CSRF-Token: Fetch, X-Tokens-Max: '5', Cookie: consent=yes, X-Keyboard: qwerty}"
    text = GOOD.replace("headers: {Accept: application/json}", headers)
    assert declared(tmp_path, text).relations["offers"].methods


def test_plain_http_is_for_private_places_that_are_allowed(tmp_path: Path) -> None:
    text = GOOD.replace("https://shop.example/api", "http://10.0.0.1/api\n    allow_private: true")
    assert declared(tmp_path, text).sources["shop"].login is not None


def test_a_database_has_a_password_and_no_auth(tmp_path: Path) -> None:
    text = GOOD.replace("https://shop.example/api", "sqlite:///shop.db")
    with pytest.raises(
        CatalogError, match=r"sources\.shop\.auth: only a web site takes it: a database's password"
    ):
        declared(tmp_path, text)
    with pytest.raises(
        CatalogError, match="only a postgresql source takes a password: remove it; a web site's goes"
    ):
        declared(tmp_path, GOOD.replace(f"auth: {AUTH}", "password_env: P"))


def test_the_name_of_a_databases_variable_is_one(tmp_path: Path) -> None:
    with pytest.raises(
        CatalogError, match="the name of an environment variable goes here, not what"
    ) as caught:
        declared(tmp_path, GOOD.replace(f"auth: {AUTH}", "password_env: hunter2!"))
    assert HUNTER not in str(caught.value)


def test_a_catalog_with_a_secret_that_is_not_there_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOP_KEY", raising=False)
    catalog = declared(tmp_path, GOOD)
    assert [secret.lack() for secret in catalog.sources["shop"].secrets] == [
        "the environment variable SHOP_KEY, which is not set"
    ]


def test_the_schema_says_what_auth_takes() -> None:
    schema = json_schema()
    auth = schema["$defs"]["SourceSpec"]["properties"]["auth"]
    assert set(auth["discriminator"]["mapping"]) == {"none", "key", "basic", "bearer", "oauth2"}
    oauth = schema["$defs"]["Oauth2Auth"]
    assert set(oauth["required"]) == {"kind", "token_url"}
    assert oauth["additionalProperties"] is False


class TestInPython:
    def test_it_is_the_same(self) -> None:
        key = KeyAuth(header="X-Api-Key", key_env="SHOP_KEY")
        for auth in (key, {"kind": "key", "header": "X-Api-Key", "key_env": "SHOP_KEY"}):
            shop = Source(name="shop", base=BASE, auth=auth)  # type: ignore[arg-type]

            class Offers(Relation, key=["isbn"]):
                isbn: str
                all = scan(mirrors=[shop], request=Template(path="/offers"), reply=JsonReader())

            catalog = sources.declared(Offers)
            assert catalog.sources["shop"].login == KeyLogin(
                BASE, Secret("SHOP_KEY", what="key"), "X-Api-Key"
            )

    def test_a_secret_that_is_written_down_is_refused_and_not_repeated(self) -> None:
        with pytest.raises(ValidationError) as caught:
            Source(name="shop", base=BASE, auth={"kind": "bearer", "token": HUNTER})  # type: ignore[arg-type]
        assert HUNTER not in str(caught.value) + repr(caught.value)
        with pytest.raises(ValidationError) as caught:
            BearerAuth(token_env=f"Bearer {HUNTER}")
        assert HUNTER not in str(caught.value) + repr(caught.value)
        shop = Source(name="shop", base=f"https://me:{HUNTER}@shop.example")

        class Offers(Relation, key=["isbn"]):
            isbn: str
            all = scan(mirrors=[shop], request=Template(path="/offers"), reply=JsonReader())

        with pytest.raises(CatalogError, match="a name or a password is written here") as told:
            sources.declared(Offers)
        assert HUNTER not in str(told.value)


class TestSecrets:
    def test_are_read_whenever_they_are_needed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        secret = Secret("SHOP_KEY", what="key")
        for value in ("one", "two\n"):
            monkeypatch.setenv("SHOP_KEY", value)
            assert secret.read() == value.strip()
        monkeypatch.setenv("SHOP_KEY", "\n")
        with pytest.raises(Refused, match="its key is missing: set the environment variable SHOP_KEY"):
            secret.read()

    def test_in_files_that_cannot_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "empty").write_text("\n")
        (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
        (tmp_path / "large").write_text("x" * 70_000)
        told = {
            "empty": "is empty: write the key into it",
            "binary": "cannot be read: not UTF-8 text",
            "large": "is larger than 65,536 bytes: is it the right one?",
            "missing": "cannot be read: No such file or directory",
            ".": "is no ordinary file: write the key into one",
            "a\0b": "cannot be read",
        }
        for name, why in told.items():
            secret = Secret(file=f"{tmp_path}/{name}", what="key")
            with pytest.raises(Refused) as caught:
                secret.read()
            assert caught.value.message.endswith(why) or why in caught.value.message
            assert not caught.value.again
            assert secret.lack().startswith("another key file: ")

    def test_a_pipe_is_not_waited_for(self) -> None:
        with pytest.raises(Refused, match="is no ordinary file"):
            Secret(file="/dev/zero", what="key").read()

    def test_show_only_where_they_are(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHOP_KEY", HUNTER)
        secret = Secret("SHOP_KEY", what="key")
        assert secret.read() == HUNTER
        assert HUNTER not in repr(secret) + str(secret)
        assert str(secret) == "the key in the environment variable SHOP_KEY"
