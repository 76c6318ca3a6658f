"""alerts list, ack, silence, rules, channels."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from thalweg.cli.client import Api, CommandError, Json, connect
from thalweg.cli.errors import own_error, print_error, print_whole_error
from thalweg.cli.output import AsJson, done, err, line, milliseconds, out, print_json, print_table, styled
from thalweg.cli.passwords import given_secret, stdin_if
from thalweg.kernel.words import amount, duration

app = typer.Typer(no_args_is_help=True, help="Alerts: what fires, who takes care, which rules, where notices go.")
Stream = Annotated[str | None, typer.Option(help="Of this stream only (name or id).")]
SecretFile = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, readable=True, help="Read the same from the first line of a file."),
]
LEVELS = {"critical": styled("critical", "red"), "warning": styled("warning", "yellow")}
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@app.command("list")
def list_alerts(
    history: Annotated[bool, typer.Option(help="Also list those that are over.")] = False,
    stream: Stream = None,
    limit: Annotated[int, typer.Option(help="Of the history.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List alerts that fire or will fire, with their meaning. Exits with 1 while an unacknowledged critical one
    fires, or while nobody evaluates the rules: then it says since when."""
    api = connect()
    query = {"state": "all" if history else "open", "stream_id": _stream_id(api, stream)}
    first = api.get("/alerts", limit=limit, **query)
    items, outdated = first["items"], first.get("outdated")  # an API of an earlier version does not tell
    if not history and first["next_cursor"] is not None:
        items = list(api.items("/alerts", **query))
    if as_json:
        print_json(items)
    elif items:
        _print_alerts(items)
    else:
        out.print("No alerts." if outdated is None else "No alerts were open then.")
    if outdated is not None:
        (err if as_json else out).print(styled(outdated, "yellow"))
    urgent = [i for i in items if i["state"] == "firing" and i["severity"] == "critical" and not i["acknowledged_at"]]
    if (urgent or outdated is not None) and not history:
        raise typer.Exit(1)


def _print_alerts(items: list[Json]) -> None:
    print_table(
        [">ID", "STATE", "SEVERITY", "SUBJECT", "ALERT", "SINCE", "OVER SINCE", "ACKNOWLEDGED"],
        [
            [
                item["id"], item["state"] + (" (silenced)" if item["silenced"] else ""), LEVELS[item["severity"]],
                item["subject"]["name"], item["message"], _time(item["fired_at"] or item["pending_at"]),
                _time(_over_since(item)) or "–", item["acknowledged_by"] or "–",
            ]
            for item in items
        ],
    )  # fmt: skip


def _over_since(alert: Json) -> str | None:
    """The message tells how it was until then. An API of an earlier version tells only when it was resolved."""
    over_since: str | None = alert.get("over_since") or alert["resolved_at"]
    return over_since


def _time(text: str | None) -> str:
    return (text or "")[:19].replace("T", " ")


OVER = {
    None: "it is resolved unless that comes back", "cleared": "it is resolved",
    "not_applicable": "its subject is gone or stopped, or its rule is off",
}  # fmt: skip


@app.command()
def show(alert_id: Annotated[str, typer.Argument(help="The alert's id.")], as_json: AsJson = False) -> None:
    """One alert: its meaning, what to do, and what became of its notices."""
    api = connect()
    alert = api.get(f"/alerts/{alert_id}")
    deliveries = list(api.items("/alerts/deliveries", alert_id=alert_id))
    errors = _errors_of(api, alert)
    if as_json:
        print_json({**alert, "deliveries": deliveries, "errors": errors})
        return
    subject = f": {alert['subject']['name']} ({alert['severity']}, {alert['state']})"
    out.print(line(styled(alert["title"], "bold"), subject))
    if (over_since := _over_since(alert)) is not None:
        out.print(f"Over since {_time(over_since)} UTC: {OVER.get(alert['resolution'], 'it is over')}. Until then:")
    for heading, text in (("", alert["message"]), ("meaning: ", alert["meaning"]), ("to do:   ", alert["action"])):
        out.print(f"{heading}{text}")
    for error in errors:
        if error["message"] in alert["message"]:
            print_error(error, said=alert["message"])
        else:
            print_whole_error(error["of"], error)
    if not errors and alert["evidence"].get("cure"):
        out.print(f"cure:    {alert['evidence']['cure']}")
    if alert["acknowledged_by"]:
        out.print(f"acknowledged by {alert['acknowledged_by']}: {alert['note'] or '–'}")
    for delivery in deliveries:
        out.print(f"{delivery['event']} to {delivery['channel_name']}: {_outcome(delivery)}")


def _errors_of(api: Api, alert: Json) -> list[Json]:
    """The present errors of what an alert is about, unless it is over: with `of`, the name of who has each. The alert's
    own text goes to everybody, and names no row."""
    if alert["stream_id"] is None or _over_since(alert) is not None:
        return []
    with suppress(CommandError):
        stream = api.get(f"/streams/{alert['stream_id']}")
        only = alert["evidence"].get("destination_id")
        of = [(stream["name"], own_error(stream))] if only is None else []
        of += [
            (destination["database"]["name"], destination["error"])
            for destination in stream["destinations"]
            if only in (None, destination["id"])
        ]
        return [{"of": name, **error} for name, error in of if error is not None]
    return []


def _outcome(delivery: Json) -> str:
    if delivery["error"] is None:
        return str(delivery["state"])
    error = delivery["error"]
    tries = "1 try" if delivery["tries"] == 1 else f"{delivery['tries']} tries"
    return f"{delivery['state']} after {tries}: {error['message']} {error['cure']}"


@app.command()
def ack(
    alert_id: Annotated[str, typer.Argument(help="The alert's id.")],
    note: Annotated[str, typer.Option(help="A note on the work under way.")] = "",
    undo: Annotated[bool, typer.Option(help="Take it back.")] = False,
) -> None:
    """Acknowledge an alert: somebody is working on it."""
    api = connect()
    if undo:
        alert = api.post(f"/alerts/{alert_id}/unacknowledge")
        done(f"“{alert['title']}” is no longer acknowledged.", alert)
        return
    alert = api.post(f"/alerts/{alert_id}/acknowledge", {"note": note})
    done(f"Acknowledged “{alert['title']}” of {alert['subject']['name']}.", alert)


@app.command()
def silence(
    duration: Annotated[str | None, typer.Argument(help="Such as 30m, 2h or 1d. Default: list the silences.")] = None,
    rule: Annotated[str | None, typer.Option(help="This rule only.")] = None,
    stream: Stream = None,
    reason: Annotated[str, typer.Option()] = "",
    end: Annotated[str | None, typer.Option(help="End the silence with this id.")] = None,
    as_json: AsJson = False,
) -> None:
    """Suppress notices for a while; alerts are still shown."""
    api = connect()
    if end is not None:
        api.delete(f"/alerts/silences/{end}")
        done("Ended.", {"ended": True})
        return
    if duration is None:
        _list_silences(api, as_json)
        return
    body: Json = {"seconds": _seconds(duration), "rule": rule, "stream_id": _stream_id(api, stream), "reason": reason}
    made = api.create("/alerts/silences", body)
    done(f"Silent until {made['until'][:19]}: {_scope(made)} (id {made['id']}).", made)


def _list_silences(api: Api, as_json: bool) -> None:
    items = list(api.items("/alerts/silences"))
    if as_json:
        print_json(items)
        return
    rows = [[item["id"], _scope(item), item["until"][:19], item["created_by"], item["reason"]] for item in items]
    print_table(["ID", "WHAT", "UNTIL", "BY", "REASON"], rows)


def _scope(made: Json) -> str:
    return f"{made['rule'] or 'every rule'}, {made['stream_name'] or 'everything'}"


@app.command()
def rules(
    rule: Annotated[str | None, typer.Argument(help="The rule to set. Default: list all.")] = None,
    set_values: Annotated[list[str] | None, typer.Option("--set", help="THRESHOLD=NUMBER, or hold=SECONDS.")] = None,
    on: Annotated[bool, typer.Option("--on", help="Switch it on.")] = False,
    off: Annotated[bool, typer.Option("--off", help="Switch it off.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Back to the defaults.")] = False,
    stream: Stream = None,
    as_json: AsJson = False,
) -> None:
    """List the rules, or set one: everywhere, or for one stream."""
    api = connect()
    known: list[Json] = api.get("/alerts/rules")["rules"]
    if rule is not None:
        found = next((item for item in known if item["id"] == rule), None)
        if found is None:
            raise CommandError(f"There is no rule “{rule}”.", "There are: " + ", ".join(i["id"] for i in known) + ".")
        if on and off:
            raise CommandError("It is either --on or --off.")
        if on or off or reset or set_values:
            known = [
                _set_rule(
                    api, found, _stream_id(api, stream), set_values or [], True if on else False if off else None, reset
                )
            ]
        else:
            known = [found]
    if as_json:
        print_json(known)
        return
    print_table(
        ["RULE", "ON", "SEVERITY", ">HOLD", "THRESHOLDS", "STREAMS OF THEIR OWN"], [_rule_row(i) for i in known]
    )


def _set_rule(
    api: Api, rule: Json, stream_id: str | None, values: list[str], enabled: bool | None, reset: bool
) -> Json:
    own = next((item["settings"] for item in rule["streams"] if item["stream_id"] == stream_id), None)
    before = rule["settings"] if stream_id is None else own or {"thresholds": {}}
    body: Json = {"thresholds": {}} if reset else {**before, "thresholds": dict(before["thresholds"])}
    for text in values:
        name, _, number = text.partition("=")
        try:
            amount = float(number)
        except ValueError as error:
            raise CommandError(f"“{text}” is not NAME=NUMBER.") from error
        if name == "hold":
            body["hold_seconds"] = amount
        else:
            body["thresholds"][name] = amount
    if enabled is not None:
        body["enabled"] = enabled
    if stream_id is None:
        return api.put(f"/alerts/rules/{rule['id']}", body, rule["etag"])
    path = f"/alerts/rules/{rule['id']}/streams/{stream_id}"
    if reset and not values and enabled is None:
        api.delete(path)
        return next(item for item in api.get("/alerts/rules")["rules"] if item["id"] == rule["id"])
    return api.put(path, body)


def _rule_row(rule: Json) -> list[str]:
    units = {threshold["name"]: threshold["unit"] for threshold in rule["thresholds"]}

    def values(effective: Json) -> str:
        known = effective["thresholds"].items()
        return ", ".join(f"{name} {amount(value, units[name])}" for name, value in known) or "–"

    now = rule["effective"]
    own = "; ".join(
        f"{item['stream_name']}: {'on' if item['effective']['enabled'] else 'off'}, {values(item['effective'])}"
        for item in rule["streams"]
    )
    return [rule["id"], "on" if now["enabled"] else "off", LEVELS[now["severity"]], duration(now["hold_seconds"]),
            values(now), own]  # fmt: skip


channels_app = typer.Typer(invoke_without_command=True, help="Where notices go: webhooks, mail, the log.")
app.add_typer(channels_app, name="channels")
Channel = Annotated[str, typer.Argument(help="The channel's name or id.")]


@channels_app.callback()
def channels(context: typer.Context, as_json: AsJson = False) -> None:
    """Without a command: list them, with their last deliveries."""
    if context.invoked_subcommand is not None:
        return
    items = list(connect().items("/alerts/channels"))
    if as_json:
        print_json(items)
        return
    print_table(
        ["NAME", "KIND", "ON", "FROM", "GOES TO", "LAST DELIVERY"],
        [
            [
                item["name"], item["kind"], "on" if item["enabled"] else "off", item["min_severity"], _target(item),
                _outcome(item["last_delivery"]) if item["last_delivery"] else "–",
            ]
            for item in items
        ],
    )  # fmt: skip


def _target(channel: Json) -> str:
    settings: dict[str, Any] = channel["settings"]
    return str(settings.get("url") or ", ".join(settings.get("recipients", [])) or "the collector's log")


@channels_app.command("test")
def test_channel(name: Channel) -> None:
    """Send a test now; fails when it does not arrive."""
    api = connect()
    found = api.find("/alerts/channels", "channel", name)
    delivery = api.post(f"/alerts/channels/{found['id']}/test")
    if delivery["error"] is not None:
        raise CommandError(delivery["error"]["message"], delivery["error"]["cure"])
    done(f"Delivered to {found['name']} in {milliseconds(delivery['took_ms'])}.", delivery)


@channels_app.command("add-webhook")
def add_webhook(
    name: Annotated[str, typer.Argument(help="Its name.")],
    url: Annotated[str, typer.Argument(help="Receives each notice by POST, as JSON.")],
    secret_stdin: Annotated[bool, typer.Option(help="Read the signing key from standard input.")] = False,
    secret_file: SecretFile = None,
    min_severity: Annotated[str, typer.Option(help="warning or critical.")] = "warning",
) -> None:
    """Add a webhook."""
    secret = given_secret(stdin_if(secret_stdin), secret_file, "--secret")
    _add({"kind": "webhook", "name": name, "min_severity": min_severity, "settings": {"url": url}}, secret)


@channels_app.command("add-email")
def add_email(
    name: Annotated[str, typer.Argument(help="Its name.")],
    host: Annotated[str, typer.Option(help="The mail server.")],
    sender: Annotated[str, typer.Option("--from", help="The From address.")],
    to: Annotated[list[str], typer.Option(help="A recipient; may be given several times.")],
    port: Annotated[int, typer.Option()] = 587,
    security: Annotated[str, typer.Option(help="starttls, tls or plain.")] = "starttls",
    user: Annotated[str, typer.Option()] = "",
    secret_stdin: Annotated[bool, typer.Option(help="Read the password from standard input.")] = False,
    secret_file: SecretFile = None,
    min_severity: Annotated[str, typer.Option(help="warning or critical.")] = "warning",
) -> None:
    """Add mail addresses."""
    settings: Json = {"host": host, "port": port, "security": security, "user": user, "sender": sender,
                      "recipients": to}  # fmt: skip
    secret = given_secret(stdin_if(secret_stdin), secret_file, "--secret")
    _add({"kind": "email", "name": name, "min_severity": min_severity, "settings": settings}, secret)


@channels_app.command("add-log")
def add_log(name: Annotated[str, typer.Argument(help="Its name.")] = "log") -> None:
    """Write notices to the collector's log."""
    _add({"kind": "log", "name": name}, None)


def _add(body: Json, secret: str | None) -> None:
    if secret is not None:
        body["secret"] = secret
    made = connect().create("/alerts/channels", body)
    done(f"Added {made['name']}. Try it: thalweg alerts channels test {made['name']}", made)


@channels_app.command("remove")
def remove_channel(name: Channel) -> None:
    """Remove a channel with its deliveries."""
    api = connect()
    found = api.find("/alerts/channels", "channel", name)
    api.delete(f"/alerts/channels/{found['id']}")
    done(f"Removed {found['name']}.", found)


def _stream_id(api: Api, name: str | None) -> str | None:
    return None if name is None else str(api.find("/streams", "stream", name)["id"])


def _seconds(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if match is None:
        raise CommandError(f"“{text}” is not a duration.", "Give a number and s, m, h or d, such as 2h.")
    return int(match[1]) * UNITS[match[2]]
