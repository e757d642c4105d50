"""docker-compose.yml against the code: whatever it names must be there. The end-to-end test runs its processes."""

import re
from pathlib import Path

import compose_stack
import make_secrets
import pytest
from driftline_service import pulse
from driftline_service.settings import SECRETS, Settings
from driftline_worker.settings import WorkerSettings

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = compose_stack.read_compose()
OURS = ("migrate", "github", *compose_stack.SERVERS)


def _known(service):
    """Every variable that the process of a service reads."""
    if service == "worker":
        return {f"DRIFTLINE_WORKER_{name.upper()}" for name in (*WorkerSettings.model_fields, "broker_url_file")}
    return {f"DRIFTLINE_{name.upper()}" for name in (*Settings.model_fields, *(f"{name}_file" for name in SECRETS))}


@pytest.mark.parametrize("service", OURS)
def test_every_variable_is_one_that_the_process_reads(service):
    assert set(COMPOSE["services"][service]["environment"]) <= _known(service)


@pytest.mark.parametrize("service", OURS)
def test_every_command_is_a_module_that_exists(service):
    _python, flag, module = COMPOSE["services"][service]["command"]
    package = "worker" if service == "worker" else "service"
    path = ROOT / package / module.replace(".", "/")
    assert flag == "-m"
    assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


def test_every_secret_is_declared_made_and_mounted_where_it_is_read(tmp_path):
    make_secrets.make(tmp_path)
    declared = {name: Path(entry["file"]).name for name, entry in COMPOSE["secrets"].items()}
    of_the_app = {"github_private_key", "github_webhook_secret"}  # GitHub makes these
    assert {path.name for path in tmp_path.iterdir()} == set(declared.values()) - of_the_app
    for service in COMPOSE["services"].values():
        read = set(re.findall(r"/run/secrets/(\w+)", str(service)))
        assert read == set(service.get("secrets", []))
        assert read <= set(declared)


def test_secrets_are_kept_when_made_again_and_closed_to_others(tmp_path):
    folder = tmp_path / "secrets"
    make_secrets.make(folder)
    before = {path.name: path.read_text() for path in folder.iterdir()}
    make_secrets.make(folder)
    assert {path.name: path.read_text() for path in folder.iterdir()} == before
    assert folder.stat().st_mode & 0o777 == 0o700
    assert before["postgres_password"] in before["database_url"]
    assert before["redis_password"] in before["broker_url"]


def test_workers_cannot_reach_the_database():
    networks = {name: set(service["networks"]) for name, service in COMPOSE["services"].items()}
    assert "database" not in networks["worker"]
    assert {name for name, used in networks.items() if "database" in used} == {
        "postgres", "migrate", "service", "reconciler", "github",
    }  # fmt: skip
    assert all(COMPOSE["networks"][name]["internal"] for name in ("database", "broker"))
    assert "database_url" not in COMPOSE["services"]["worker"]["secrets"]


def test_every_mounted_or_copied_path_exists():
    mounts = [v for s in COMPOSE["services"].values() for v in s.get("volumes", []) if v.startswith("./")]
    dockerfile = (ROOT / "Dockerfile").read_text()
    copied = [word for line in re.findall(r"^COPY (.+)$", dockerfile, re.M) for word in line.split()[:-1]]
    assert mounts
    assert copied
    for path in (*(mount.split(":")[0] for mount in mounts), *copied):
        assert (ROOT / path).exists(), path


def test_images_named_by_services_are_stages_of_the_dockerfile():
    stages = set(re.findall(r"^FROM \S+ AS (\w+)$", (ROOT / "Dockerfile").read_text(), re.M))
    built = {s["build"]["target"] for s in COMPOSE["services"].values() if "build" in s}
    assert built == {"service", "worker"} <= stages


def test_the_port_is_one_everywhere():
    environment = COMPOSE["services"]["service"]["environment"]
    port = environment["DRIFTLINE_BIND_PORT"]
    assert COMPOSE["services"]["service"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert COMPOSE["services"]["worker"]["environment"]["DRIFTLINE_WORKER_SERVICE_URL"] == f"http://service:{port}"
    assert f"service:{port}" in (ROOT / "dashboards/prometheus/prometheus.yml").read_text()
    assert f"127.0.0.1:{port}/healthz" in (ROOT / "Dockerfile").read_text()
    assert Settings.model_fields["bind_port"].default == int(port)


def test_nothing_runs_as_root_without_limits_or_unwatched():
    stages = (ROOT / "Dockerfile").read_text().split("\nFROM ")
    users = {stage.split()[2]: "\nUSER driftline" in stage for stage in stages[1:]}
    for name, service in COMPOSE["services"].items():
        assert service["user"] not in ("root", "0") if "user" in service else users[service["build"]["target"]], name
        assert service["deploy"]["resources"]["limits"]["memory"], name
        checked = "test" in service.get("healthcheck", {}) or name == "service"  # the image's own
        assert checked or name in ("migrate", "github", "worker"), name


DOCUMENTED = re.findall(r"`(DRIFTLINE_\w+|GRAFANA_PORT)`", "".join(
    line for line in (ROOT / "docs/deployment.md").read_text().splitlines() if line.startswith("| `")
))  # fmt: skip


def test_the_table_of_variables_is_what_the_file_takes():
    taken = set(re.findall(r"\$\{(\w+):-", compose_stack.COMPOSE.read_text()))
    assert set(DOCUMENTED) == taken - {"DRIFTLINE_GITHUB_APP_ID"}  # docs/github.md


def test_every_variable_of_the_page_is_one_that_some_process_reads():
    named = set(re.findall(r"\b(?:DRIFTLINE_[A-Z_]+[A-Z])\b", (ROOT / "docs/deployment.md").read_text()))
    assert named <= _known("service") | _known("worker") | {"DRIFTLINE_PORT"}


def test_the_reconcilers_health_check_looks_at_what_it_touches():
    reconciler = COMPOSE["services"]["reconciler"]
    _, _python, flag, module, file = reconciler["healthcheck"]["test"]
    assert (flag, module) == ("-m", pulse.__name__)
    assert file == reconciler["environment"]["DRIFTLINE_PULSE_FILE"]
    assert any(file.startswith(f"{folder}/") for folder in reconciler["tmpfs"])


def test_what_dot_env_says_arrives(tmp_path, monkeypatch):
    make_secrets.make(tmp_path / "secrets")
    given = {"DRIFTLINE_PRIVATE": "true", "DRIFTLINE_TRUSTED_PROXIES": '["10.0.0.0/8"]'}
    process = compose_stack.process(
        compose_stack.read_compose(given), "service", compose_stack.Place(tmp_path, tmp_path / "secrets", 8642)
    )
    for key, value in process.environment.items():
        monkeypatch.setenv(key, value)
    settings = Settings.from_environment()
    assert (settings.private, settings.trusted_proxies) == (True, ("10.0.0.0/8",))


def test_settings_given_by_the_file_are_accepted(tmp_path, monkeypatch):
    make_secrets.make(tmp_path / "secrets")
    place = compose_stack.Place(tmp_path, tmp_path / "secrets", 8642)
    for name, model in (("service", Settings), ("worker", WorkerSettings)):
        process = compose_stack.process(COMPOSE, name, place)
        for key, value in process.environment.items():
            monkeypatch.setenv(key, value)
        assert model.from_environment().broker_url.get_secret_value().startswith("redis://:")
