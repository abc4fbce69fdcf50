"""What a file that describes pools may say only with trust: addresses, keys, commands, and files elsewhere."""

from __future__ import annotations

import tomllib

import pytest

from skyward.plan.config.pool_file_rules import fingerprint, wishes


@pytest.mark.parametrize(
    ("line", "wish"),
    [
        (
            'provider = { type = "DigitalOcean", endpoint = "http://e.example" }',
            "provider.endpoint = 'http://e.example'",
        ),
        ('provider = [{ type = "A" }, { type = "B", api_url = "e.example" }]', "provider.api_url = 'e.example'"),
        ('provider = { type = "Other", region = "https://e.example" }', "provider.region = 'https://e.example'"),
        ('provider = { type = "Other", to = { deep = { proxy = "e" } } }', "provider.to.deep.proxy = 'e'"),
        ('provider = { type = "SSH", hosts = ["a"], key = "~/.ssh/lab" }', "provider.key"),
        ('provider = { type = "SSH", hosts = ["a"], jump = "me@gate" }', "provider.jump = 'me@gate'"),
        ('provider = { type = "SSH", hosts = ["a"], known_hosts = "own" }', "provider.known_hosts = 'own'"),
        ('provider = { type = "SSH", hosts = ["a"], trust = "first-use" }', "provider.trust = 'first-use'"),
        ('provider = { type = "AWS", secret_key = "hunter2" }', "provider.secret_key"),
        ('provider = { type = "Verda", client_secret = "hunter2" }', "provider.client_secret"),
        ('provider = { type = "RunPod", api_key = "hunter2" }', "provider.api_key"),
        ('provider = { type = "Other", start_command = "sh x" }', "provider.start_command = 'sh x'"),
        ('plugins = [{ type = "other", server = "e.example" }]', "plugins.server = 'e.example'"),
        ('image = { shell_vars = { A = "curl e | sh" } }', "image.shell_vars.A = 'curl e | sh'"),
        ('image = { includes = ["src", "~/.ssh"] }', "image.includes = '~/.ssh'"),
        ('image = { includes = ["/etc"] }', "image.includes = '/etc'"),
        ('image = { includes = ["data/../../b"] }', "image.includes = 'data/../../b'"),
        ('logging = { file = "~/.bashrc" }', "logging.file = '~/.bashrc'"),
        ('options = { logging = { file = "x" } }', "options.logging.file = 'x'"),
        ('trust = "code"', "trust = 'code'"),
        ('image = { env = { A = "${B}" } }', "image.env.A reads ${B}"),
        ('provider = { type = "SSH", hosts = ["${file:~/.key}.e.example"] }', "provider.hosts[0] reads ${file:~/.key}"),
        ('image = { metrics = [{ type = "Custom", name = "a", command = "x" }] }', "image.metrics.command = 'x'"),
    ],
)
def test_what_only_the_user_may_say(line: str, wish: str) -> None:
    """Each is named with its place; of what may be secret, the name is enough."""
    assert (f"pools.train.{wish}",) == wishes(tomllib.loads(f"[pools.train]\nnodes = 2\n{line}\n"))
    assert "hunter2" not in str(wishes(tomllib.loads(f"[pools.train]\n{line}\n")))


@pytest.mark.parametrize(
    "line",
    [
        'provider = { type = "AWS", region = "eu-central-1", zone = "a", use_ssm = false }',
        'provider = ["local", { type = "SSH", hosts = ["gpu-box", "me@10.0.0.5:2222"], user = "me", port = 22 }]',
        'provider = { type = "DigitalOcean", region = ["ams3"], vpc = "760e09ef", ssh_port = 22 }',
        'provider = { type = "RunPod", cloud = "community", container_image = "runpod/base:1", disk_gb = 20 }',
        'provider = { type = "VastAI", docker_image = "nvidia/cuda:12.8", verified = true, bid_factor = 1.2 }',
        'provider = { type = "Container", image = "registry/own:1", binary = "podman" }',
        'plugins = ["torch", { type = "mig", profile = "1g.10gb" }]',
        'image = { pip = ["torch"], apt = ["git"], env = { A = "b" }, includes = ["./src", "configs/*.yaml"] }',
        "options = { console = false }",
        "logging = false",
        "nodes = [2, 8]",
        'trust = "data"',
    ],
)
def test_what_any_file_may_say(line: str) -> None:
    """What is wanted, and where: a file without more needs no trust."""
    assert () == wishes(tomllib.loads(f"[pools.train]\n{line}\n"))


@pytest.mark.parametrize("text", ["", "pools = 3", "[pools]\ntrain = 3", "[tool]\nurl = 'x'"])
def test_what_describes_no_pool_wishes_nothing(text: str) -> None:
    """It is refused elsewhere, in words of its own."""
    assert () == wishes(tomllib.loads(text))


def test_place_and_content_make_a_fingerprint() -> None:
    """Neither can be exchanged for the other."""
    assert 4 == len({fingerprint(path, text) for path in ("/a", "/ab") for text in (b"bc", b"c")})
    assert fingerprint("/a", b"x") == fingerprint("/a", b"x")


def test_the_folder_of_a_volume_is_taken_from_a_trusted_file_only() -> None:
    """It may be any on this computer."""
    volume = {"bucket": "my-data", "mount": "/data"}
    assert () == wishes({"pools": {"train": {"volumes": [volume]}}})
    found = wishes({"pools": {"train": {"volumes": [{**volume, "storage": "/srv"}]}}})
    assert ("pools.train.volumes.storage = '/srv'",) == found


def test_tables_outside_of_pools_need_trust_as_those_within() -> None:
    """A pool, or one of the user's own file, may name them."""
    document = tomllib.loads("""
extends = "/etc/skyward.toml"
[providers.lab]
endpoint = "https://e.example"
[plugins.other]
server = "e.example"
[images.base]
includes = ["~/.ssh"]
[metrics.own]
command = "sh x"
[options.logging]
file = "~/.bashrc"
""")
    assert (
        "extends = '/etc/skyward.toml'",
        "images.base.includes = '~/.ssh'",
        "providers.lab.endpoint = 'https://e.example'",
        "plugins.other.server = 'e.example'",
        "metrics.own.command = 'sh x'",
        "options.logging.file = '~/.bashrc'",
    ) == wishes(document)
