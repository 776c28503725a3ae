"""The alerts and the dashboard are valid, name metrics that exist, and say what they are for."""

import asyncio
import re
import urllib.request

import pytest
import yaml

from service.metrics.shared_counters import SECONDS
from service.settings import PREFIX, Settings
from support.deployment import (
    DEPLOY,
    OVERLAYS,
    PLAIN_RULES,
    Document,
    alerts,
    dashboard,
    metrics_in,
    of_kind,
    panels,
    promtool,
    recordings,
    served_metrics,
    values_of,
)
from support.harness import ROOT, server_process

TESTS = DEPLOY / "prometheus" / "tests" / "alerts.yaml"
ADAPTER = DEPLOY / "prometheus" / "adapter.yaml"
each_alert = pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
each_panel = pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])


def expressions(document: object) -> set[str]:
    return metrics_in(str(text) for key in ("expr", "query", "definition") for text in values_of(document, key))


def test_promtool_accepts_the_alerts() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", PLAIN_RULES)


def test_every_alert_fires_on_its_series_and_on_no_other() -> None:
    promtool("test", "rules", TESTS)


@each_alert
def test_an_alert_has_a_test(alert: Document) -> None:
    fired = [
        sample["labels"]
        for test in yaml.safe_load(TESTS.read_text())["tests"]
        for check in test["promql_expr_test"]
        for sample in check["exp_samples"]
    ]
    assert f'{{alertname="{alert["alert"]}"}}' in fired


@each_alert
def test_the_healthy_series_have_the_metrics_of_an_alert(alert: Document) -> None:
    healthy = yaml.safe_load(TESTS.read_text())["tests"][0]
    assert healthy["name"] == "healthy"
    assert not any(check["exp_samples"] for check in healthy["promql_expr_test"])
    assert expressions(alert) <= metrics_in(series["series"] for series in healthy["input_series"]) | recorded()


def recorded() -> set[str]:
    """Returns the names of what rules record."""
    return {rule["record"] for rule in recordings()}


def test_recording_rules_are_of_metrics_of_the_service_and_of_healthy_series() -> None:
    healthy = yaml.safe_load(TESTS.read_text())["tests"][0]
    named = expressions(recordings())
    assert named <= served_metrics()
    assert named <= metrics_in(series["series"] for series in healthy["input_series"])


@pytest.mark.parametrize("rule", recordings(), ids=lambda rule: f"{rule['record']} {rule['labels']['slo']}")
def test_a_recording_rule_has_a_test_of_its_value(rule: Document) -> None:
    values = [
        sample["value"]
        for test in yaml.safe_load(TESTS.read_text())["tests"]
        for check in test["promql_expr_test"]
        for sample in check["exp_samples"]
        if rule["record"] in check["expr"] and f'slo="{rule["labels"]["slo"]}"' in sample["labels"]
    ]
    assert any(values)


def test_a_recording_rule_names_a_bucket_of_the_service() -> None:
    bounds = {bound for rule in recordings() for bound in re.findall(r'le="([^"]+)"', rule["expr"])}
    assert bounds
    assert bounds <= {str(bound) for bound in SECONDS}


@each_alert
def test_an_alert_names_metrics_of_the_service(alert: Document) -> None:
    assert expressions(alert) <= served_metrics() | recorded()


@each_alert
def test_an_alert_says_what_to_do(alert: Document) -> None:
    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert alert["annotations"]["summary"]
    assert len(alert["annotations"]["description"].split()) >= 15
    assert alert["annotations"]["runbook_url"].endswith("/blob/main/docs/operation.md#alerts")


def test_the_page_says_what_to_do_for_every_alert() -> None:
    assert list(rows_of_alerts()) == [alert["alert"] for alert in alerts()]


@each_alert
def test_alert_and_page_name_the_same_settings(alert: Document) -> None:
    named, row = settings_in(alert["annotations"]["description"]), rows_of_alerts()[alert["alert"]]
    assert named == settings_in(row)
    assert named <= {f"{PREFIX}{field.upper()}" for field in Settings.model_fields}


@pytest.mark.parametrize(
    ("name", "limit"), [("RummikubManyCalls", "max_calls"), ("RummikubManyWatchers", "max_watches")]
)
def test_an_alert_fires_before_the_limit_that_it_names(name: str, limit: str) -> None:
    [alert] = [alert for alert in alerts() if alert["alert"] == name]
    default = Settings.model_fields[limit].default
    assert int(alert["expr"].rpartition("> ")[2]) == 0.8 * default
    assert f"{PREFIX}{limit.upper()} ({default:,})" in alert["annotations"]["description"]
    [fires_at] = re.findall(rf"{name} (?:fires )?at ([\d,]+) ", (ROOT / "docs" / "operation.md").read_text())
    assert int(fires_at.replace(",", "")) == 0.8 * default


def rows_of_alerts() -> dict[str, str]:
    """Returns what docs/operation.md says about each alert."""
    page = (ROOT / "docs" / "operation.md").read_text().partition("### Alerts")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| (Rummikub\w+) \| (.+) \|$", page, re.MULTILINE))


def settings_in(text: str) -> set[str]:
    """Returns the variables of the service that a text names."""
    return set(re.findall(rf"\b{PREFIX}\w+", text))


@each_panel
def test_a_panel_names_metrics_of_the_service(panel: Document) -> None:
    found = expressions(panel)
    assert found
    assert found <= served_metrics() | recorded()


@each_panel
def test_a_panel_has_a_description(panel: Document) -> None:
    assert re.fullmatch(r"[A-Z0-9].{20,}\.", panel["description"])
    assert all(target["expr"].count("(") == target["expr"].count(")") for target in panel["targets"])


def test_the_parts_of_the_dashboard_are_distinct_and_beside_each_other() -> None:
    everything = dashboard()["panels"]
    ids = [panel["id"] for panel in everything]
    assert len(set(ids)) == len(ids)
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in everything)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


def test_the_dashboard_shows_every_metric() -> None:
    shown = expressions(dashboard())
    stems = {re.sub(r"_(bucket|count|sum)$", "", name) for name in served_metrics()}
    assert not {stem for stem in stems if not any(name.startswith(stem) for name in shown)}


def test_the_variables_of_the_dashboard_name_metrics_of_the_service() -> None:
    assert expressions(dashboard()["templating"]) <= served_metrics()


def test_the_adapter_serves_the_metric_of_the_autoscalers() -> None:
    [rule] = yaml.safe_load(ADAPTER.read_text())["rules"]["custom"]
    served = metrics_in([rule["seriesQuery"]])
    assert served <= served_metrics()
    for overlay in OVERLAYS:
        for autoscaler in of_kind(overlay, "HorizontalPodAutoscaler").values():
            [pods] = values_of(autoscaler, "pods")
            assert {pods["metric"]["name"]} == served


@pytest.mark.parametrize("overlay", [overlay for overlay in OVERLAYS if overlay != "local"])
def test_an_overlay_has_the_dashboard_and_the_scrapes(overlay: str) -> None:
    shown = of_kind(overlay, "ConfigMap")["rummikub-dashboard"]
    assert shown["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert shown["data"] == {"rummikub.json": (DEPLOY / "grafana" / "rummikub.json").read_text()}
    [monitor] = of_kind(overlay, "ServiceMonitor").values()
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    [endpoint] = monitor["spec"]["endpoints"]
    scraped = {
        name
        for name, service in of_kind(overlay, "Service").items()
        if wanted <= service["metadata"]["labels"].items()
        and endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    }
    assert scraped == {"rummikub-headless", "rummikub-validation-headless"}
    assert {
        rule["alert"]
        for rules in values_of(of_kind(overlay, "PrometheusRule"), "rules")
        for rule in rules
        if "alert" in rule
    } == {alert["alert"] for alert in alerts()}


async def test_promtool_accepts_the_metrics_of_a_server() -> None:
    async with server_process({"RUMMIKUB_REDIS_URL": "memory://"}) as server:
        text = await asyncio.to_thread(scrape, server.metrics_port)
    assert metrics_in([text])
    promtool("check", "metrics", stdin=text)


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return str(answer.read().decode())
