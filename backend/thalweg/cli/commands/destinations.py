"""destinations list, add, start, stop, retry, drop, set, rules; errors: one of a stream's destinations by itself."""

from typing import Annotated
from urllib.parse import urlencode

import typer

from thalweg.cli.client import Api, CommandError, Json, connect
from thalweg.cli.commands.rules import RowRules, row_rules_in
from thalweg.cli.commands.streams import (
    Accept,
    Name,
    Set,
    are_live,
    destination_of,
    parameters_of,
    print_destinations,
)
from thalweg.cli.following import TIMEOUT, Timeout, Wait, WaitForEffect, follow, follow_change
from thalweg.cli.output import (
    CHECKING,
    AsJson,
    Yes,
    confirm,
    done,
    line,
    out,
    print_json,
    print_table,
    settings_in_words,
    told_if_long,
)
from thalweg.kernel.lifecycle import ExecutionState

app = typer.Typer(no_args_is_help=True, help="The destinations of a stream, each by itself.")
One = Annotated[str, typer.Argument(metavar="DESTINATION", help="The destination's database, or its id in the stream.")]
Force = Annotated[bool, typer.Option(help="Give up on what cannot be reached. The operation says what is left behind.")]


def whole_stream(api: Api, name: str) -> Json:
    return api.get(f"/streams/{api.find('/streams', 'stream', name)['id']}")


def one_of(stream: Json, name: str | None) -> Json:
    """None is enough where there is only one."""
    known: list[Json] = stream["destinations"]
    for destination in known:
        if name in (destination["id"], destination["database"]["name"]) or (name is None and len(known) == 1):
            return destination
    names = ", ".join(destination["database"]["name"] for destination in known)
    if name is None:
        raise CommandError(f"{stream['name']} has several destinations.", f"Name one with --destination: {names}.")
    raise CommandError(f"{stream['name']} has no destination “{name}”.", f"There are: {names}.")


@app.command("list")
def list_destinations(name: Name, as_json: AsJson = False) -> None:
    """Each destination's state, rate, latency and lag."""
    stream = whole_stream(connect(), name)
    if as_json:
        print_json(stream["destinations"])
        return
    print_destinations(stream)


@app.command()
def add(
    name: Name,
    to: Annotated[str, typer.Argument(metavar="DATABASE[@ENGINE]", help="The database, and the engine that applies.")],
    row_rules: RowRules = None,
    settings: Set = None,
    accept: Accept = None,
    wait: Wait = False,
    timeout: Timeout = TIMEOUT,
) -> None:
    """Add a destination to a stream. It is copied and catches up while the others continue. The rules of --row-rules
    are its own, beside the stream's."""
    api = connect()
    stream = api.find("/streams", "stream", name)
    body = {
        **destination_of(api, to), "parameters": parameters_of(api, settings), "accept": accept or [],
        "row_rules": row_rules_in(row_rules) if row_rules else [],
    }  # fmt: skip
    with told_if_long(CHECKING):
        accepted = api.create(f"/streams/{stream['id']}/destinations", body)
    follow(api, accepted, wait, f"Adding {to.rpartition('@')[0] or to} to {stream['name']}", timeout)


def _act(name: str, destination: str, action: str, what: str, wait: bool, timeout: float) -> None:
    api = connect()
    stream = whole_stream(api, name)
    found = one_of(stream, destination)
    accepted = api.post(f"/streams/{stream['id']}/destinations/{found['id']}:{action}")
    follow(api, accepted, wait, f"{what} {found['database']['name']} of {stream['name']}", timeout)


@app.command()
def start(name: Name, destination: One, wait: Wait = False, timeout: Timeout = TIMEOUT) -> None:
    """Resume a paused destination."""
    _act(name, destination, "start", "Resuming", wait, timeout)


@app.command()
def stop(
    name: Name, destination: One, yes: Yes = False, wait: Wait = False, timeout: Timeout = TIMEOUT
) -> None:  # fmt: skip
    """Pause a destination. Its backlog grows on the engine's disk; the others continue. Asks for confirmation on a
    terminal."""
    confirm(f"Pause {destination} of {name}? Nothing arrives there until it is started again", yes)
    _act(name, destination, "stop", "Pausing", wait, timeout)


@app.command()
def retry(name: Name, destination: One, wait: Wait = False, timeout: Timeout = TIMEOUT) -> None:
    """Clear a destination's error and retry immediately."""
    _act(name, destination, "retry", "Retrying", wait, timeout)


@app.command()
def drop(
    name: Name, destination: One, force: Force = False, yes: Yes = False, wait: Wait = False,
    timeout: Timeout = TIMEOUT,
) -> None:  # fmt: skip
    """Drop a destination: its backlog is discarded for good. Its tables and rows stay. Asks for confirmation on a
    terminal."""
    api = connect()
    stream = whole_stream(api, name)
    found = one_of(stream, destination)
    shown = found["database"]["name"]
    confirm(f"Drop {shown} from {stream['name']}, and discard what it has not got yet?", yes)
    accepted = api.delete(f"/streams/{stream['id']}/destinations/{found['id']}", force=force)
    lost = "" if force else f"If {shown} is lost for good, drop it with --force."
    follow(api, accepted, wait, f"Dropping {shown} from {stream['name']}", timeout, lost)


@app.command("set")
def set_parameters(
    name: Name,
    destination: One,
    settings: Annotated[list[str], typer.Argument(help="parameter=value ...")],
    wait: WaitForEffect = False,
    timeout: Timeout = TIMEOUT,
) -> None:
    """Override the stream's parameters at a destination. Omitted parameters revert to the stream's values."""
    api = connect()
    stream = whole_stream(api, name)
    found = one_of(stream, destination)
    path = f"/streams/{stream['id']}/destinations/{found['id']}"
    before, after = found["parameters"], parameters_of(api, settings)
    changed = api.patch(path, {"parameters": after}, stream["etag"])
    message = settings_in_words(one_of(changed, found["id"])["parameters"])
    differing = [name for name in before | after if before.get(name) != after.get(name)]
    live = are_live(api, differing or after)
    follow_change(api, changed, wait, message, timeout, only=found["id"], live=live)


@app.command("rules")
def set_rules(
    name: Name,
    destination: One,
    row_rules: RowRules = None,
    accept: Accept = None,
    wait: WaitForEffect = False,
    timeout: Timeout = TIMEOUT,
) -> None:
    """Choose a destination's own row rules, beside the stream's.

    They become those of --row-rules; without it the destination has none. If other rows of a table pass then, it asks
    for --accept row_rules_changed.
    """
    api = connect()
    stream = whole_stream(api, name)
    found = one_of(stream, destination)
    path = f"/streams/{stream['id']}/destinations/{found['id']}"
    body = {"row_rules": row_rules_in(row_rules) if row_rules else [], "accept": accept or []}
    with told_if_long(CHECKING):
        changed = api.patch(path, body, stream["etag"])
    message = f"The rules of {found['database']['name']} of {stream['name']} are chosen again."
    follow_change(api, changed, wait, message, timeout, only=found["id"])


def errors(
    name: Name,
    destination: Annotated[str | None, typer.Option(help="The destination, if the stream has several.")] = None,
    show: Annotated[
        int | None, typer.Option(metavar="ID", help="Show this transaction's changes beside the destination's rows.")
    ] = None,
    after: Annotated[
        int, typer.Option(min=0, metavar="NUMBER", help="Of --show: the changes with higher numbers; 100 at a time.")
    ] = 0,
    tree: Annotated[
        int | None, typer.Option(metavar="ID", help="List what waits behind this transaction, as a tree.")
    ] = None,
    execute: Annotated[
        int | None, typer.Option(metavar="ID", help="Apply this transaction again, and those that wait behind it.")
    ] = None,
    execute_all: Annotated[
        bool,
        typer.Option(
            "--execute-all",
            help="Apply all parked transactions again, in the source's order; with --cause, those with one cause.",
        ),
    ] = False,
    dry_run: Annotated[
        int | None,
        typer.Option("--dry-run", metavar="ID", help="Try this transaction and roll it back: would it succeed?"),
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(help="Apply or try them as this role of the destination, of which the engine's user is a member."),
    ] = None,
    cause: Annotated[str | None, typer.Option(help="Only those with this cause, as the list names it.")] = None,
    discard: Annotated[
        int | None, typer.Option(metavar="ID", help="Discard this transaction for good: its changes are never applied.")
    ] = None,
    partly: Annotated[
        bool, typer.Option("--partly", help="Discard it also if the audit log cannot keep all of its changes.")
    ] = False,
    leave_out: Annotated[
        int | None, typer.Option("--leave-out", metavar="ID", help="Leave --change of this transaction out.")
    ] = None,
    edit: Annotated[
        int | None,
        typer.Option(
            metavar="ID",
            help="Give --change of this transaction the values of --set and --null, in place of earlier ones.",
        ),
    ] = None,
    restore: Annotated[
        int | None, typer.Option(metavar="ID", help="Take --change of this transaction back as it came.")
    ] = None,
    change: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Which change, as --show numbers them.")
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="COLUMN=VALUE", help="A column's value, in text form.")
    ] = None,
    nulls: Annotated[
        list[str] | None, typer.Option("--null", metavar="COLUMN", help="A column that becomes NULL.")
    ] = None,
    if_match: Annotated[
        str | None,
        typer.Option(
            "--if-match",
            metavar="ETAG",
            help="Decide about a change only if nobody has since --show printed this. Needed where the change is "
            "decided about already.",
        ),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(help="Why it is discarded, left out or edited; the audit log keeps it with the changes."),
    ] = None,
    yes: Yes = False,
    every: Annotated[bool, typer.Option("--all", help="Also list those that wait behind another one.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many are listed.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Continue the list at the cursor that it printed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Transactions parked in the error queue of a stream's destination, by cause and one by one; open one, leave single
    changes of it out or edit them, try it, apply it again, or discard it.

    Asks on a terminal before it applies or discards one."""
    if role is not None and execute is None and dry_run is None and not execute_all:
        raise CommandError("Nothing is executed.", "Give --role with --execute, --execute-all or --dry-run.")
    if after and show is None:
        raise CommandError("No transaction is shown.", "Give --after with --show.")
    of_change = next((option for option in (leave_out, edit, restore) if option is not None), None)
    chosen = sum(option is not None for option in (show, tree, execute, dry_run, discard, leave_out, edit, restore))
    if chosen + execute_all > 1:
        raise CommandError(
            "One thing at a time.",
            "Give one of --show, --tree, --leave-out, --edit, --restore, --dry-run, --execute, --execute-all and "
            "--discard.",
        )
    if any(option is not None for option in (discard, leave_out, edit)) and not reason:
        raise CommandError("The destination will differ from the source.", "Say why: --reason '...'.")
    if if_match is not None and of_change is None:
        raise CommandError("No change is decided about.", "Give --if-match with --leave-out, --edit or --restore.")
    if of_change is not None and change is None:
        raise CommandError("Which change of the transaction?", "Give --change NUMBER, as --show numbers them.")
    api = connect()
    stream = whole_stream(api, name)
    path = f"/streams/{stream['id']}/destinations/{one_of(stream, destination)['id']}/errors"
    at = one_of(stream, destination)["database"]["name"]
    as_role = None if role is None else {"role": role}
    if role is not None:
        check_knows_roles(api)
    if execute is not None:
        confirm(f"Apply transaction {execute} again at {at}, and those that wait behind it?", yes)
        try:
            answer = api.post(f"{path}/{execute}/execute", as_role)
        except CommandError as refused:
            if refused.code != "execution_refused":
                raise
            # An earlier version of the API refuses what was applied in part, too.
            answer = api.get(path, limit=1)["execution"] or {}
            if answer.get("error_id") != execute or not answer.get("executed"):
                raise
        if answer["state"] == ExecutionState.FAILED:
            raise stopped_behind(answer, api.get(path, limit=1)["execution"], execute)
        applied = answer["state"] == ExecutionState.DONE
        last = api.get(path, limit=1)["execution"] if applied else None
        if last and last["error_id"] == execute and execute in last.get("left_out_ids", []):
            done(f"{nothing_applied(execute)}.", {"id": execute, "done": "left_out"})
            return
        outcome = "is applied" if applied else "is being applied, with those behind it; the list shows the progress"
        done(f"Transaction {execute} {outcome}.", {"id": execute, "done": "applied" if applied else "running"})
        return
    if execute_all:
        which = "parked transactions" if cause is None else f"parked transactions with the cause {cause}"
        confirm(f"Apply all {which} again at {at}? What fails again stays parked", yes)
        query = "" if cause is None else f"?{urlencode({'cause': cause})}"
        answer = api.post(f"{path}:execute{query}", as_role)
        if answer["state"] == ExecutionState.FAILED:
            failed = f"{answer['executed']} applied, {answer['failed_again'] or 1} failed again: {answer['message']}"
            raise CommandError(failed, "Read what is left in the queue.")
        applied = answer["state"] == ExecutionState.DONE
        outcome = "have been applied" if applied else "are being applied; the list shows the progress"
        last = api.get(path, limit=1)["execution"] if applied else None
        if last and last.get("left_out"):
            outcome += f"; of {last['left_out']} of them nothing, because all their changes are left out"
        done(f"All {which} {outcome}.", {"done": "applied" if applied else "running"})
        return
    if dry_run is not None:
        tried = api.post(f"{path}/{dry_run}/dry-run", as_role)
        if as_json:
            print_json(tried)
        elif tried["succeeds"] and tried.get("left_out", 0) == tried.get("changes"):
            out.print(f"Nothing of transaction {dry_run} would be applied: all its changes are left out.")
        elif tried["succeeds"]:
            out.print(f"Transaction {dry_run} would be applied{edits_in_words(tried)}. Nothing was changed.")
        else:
            at_change = f" at change {tried['failed_change']}" if tried.get("failed_change") else ""
            raise CommandError(f"Transaction {dry_run} would fail{at_change}: {tried['message']}", tried["cure"])
        return
    if show is not None:
        contents = api.get(f"{path}/{show}", after=after or None)
        if as_json:
            print_json(contents)
        else:
            show_contents(contents, after)
        return
    if tree is not None:
        found = api.get(f"{path}/{tree}/dependants", limit=limit, cursor=cursor)
        if as_json:
            print_json(found)
        else:
            show_tree(tree, found)
        return
    if of_change is not None:
        address = f"{path}/{of_change}/changes/{change}"
        etag = if_match or etag_of_undecided(api, path, of_change, int(change or 0), restore is not None)
        if restore is not None:
            api.delete(address, {"If-Match": etag})
            outcome = "is applied as it came"
        elif leave_out is not None:
            api.put(address, {"left_out": True, "reason": reason}, etag)
            outcome = "is left out when the transaction is executed"
        else:
            new = new_values(values or [], nulls or [])
            api.put(address, {"values": new, "reason": reason}, etag)
            outcome = f"is executed with {values_in_words(new)}, and all other values as they came"
        what = f"Change {change} of transaction {of_change}"
        done(f"{what} {outcome}.", {"id": of_change, "change": change, "done": outcome})
        return
    if discard is not None:
        confirm(f"Discard transaction {discard}? Its changes are never applied at {at} then", yes)
        api.delete(f"{path}/{discard}", None, reason=reason, partly=partly)
        done(f"Transaction {discard} is discarded.", {"id": discard, "done": "discarded"})
        return
    queue = api.get(path, limit=limit, roots_only=not every and cause is None, cursor=cursor, cause=cause)
    parked = queue["errors"]
    if as_json:
        print_json(parked)
        return
    if queue.get("causes") and cause is None and cursor is None:
        show_causes(queue["causes"])
    if parked:
        print_table(
            [">ID", "PARKED", "COMMIT", ">LCRS", "TABLES", "MESSAGE"],
            [
                [
                    str(item["id"]), item["parked_at"][:19], item["commit_lsn"], lcrs_in_words(item),
                    ", ".join(item["tables"]), item["message"] or "",
                ]
                for item in parked
            ],
        )  # fmt: skip
    elif not queue["total"]:
        out.print("The error queue is empty.")
    waiting = queue["total"] - queue["roots"]
    if waiting > 0 and not every and cause is None:
        verb = "waits" if waiting == 1 else "wait"
        out.print(f"{queue['total']} are parked; {waiting} of them {verb} behind others: --all lists them.")
    if queue["next_cursor"]:
        out.print(f"There are more: --cursor {queue['next_cursor']}")
    execution = queue["execution"]
    if execution and execution["state"] != ExecutionState.DONE:
        out.print(execution_in_words(execution))
        for failure in execution.get("failures", []):
            out.print(line(f"  {failure['error_id']}: {failure['message']}"))


# Members that came with later versions of the API are read with `get`: an upgrade may reach the command line first.
def execution_in_words(execution: Json) -> str:
    what = execution["error_id"] or (f"those with the cause {execution['cause']}" if execution.get("cause") else "all")
    far = f"The execution of {what} has applied {execution['executed']} of {execution['total']}"
    failed = f"{execution['failed_again']} failed again" if execution.get("failed_again") else ""
    if execution["state"] == ExecutionState.RUNNING:
        return f"{far}, {failed}, and is under way." if failed else f"{far} and is under way."
    # One that has tried them all has not stopped.
    return f"{far}; {failed}: {execution['message']}" if failed else f"{far} and stopped: {execution['message']}"


def check_knows_roles(api: Api) -> None:
    """An API that does not know the request's body ignores it, and would apply the changes as the engine's user."""
    if "Execution" not in api.get("/openapi.json")["components"]["schemas"]:
        raise CommandError(
            "This API is of an earlier version and cannot apply as another role.",
            "Upgrade the control plane to the command line's version.",
        )


def nothing_applied(error_id: int) -> str:
    return f"Transaction {error_id} has left the queue, and nothing of it was applied: all its changes are left out"


def etag_of_undecided(api: Api, path: str, error_id: int, number: int, restores: bool) -> str:
    """The If-Match for a change that nobody has decided about, or that is to be as it came. Refuses to take the place
    of somebody's decision unseen."""
    if restores:
        return "*"
    try:
        contents = api.get(f"{path}/{error_id}", after=number - 1, limit=1)
    except CommandError as refused:
        if refused.code not in ("engine_refused", "invalid_request"):
            raise
        return "*"  # an older engine, or API: it neither shows the change nor knows versions
    decided = next((change["edit"] for change in contents["changes"] if change["number"] == number), None)
    etag = contents["error"]["etag"]
    if decided is None or etag is None:
        return etag or "*"
    what = edit_in_words(decided)
    raise CommandError(
        f"Change {number} of transaction {error_id} is decided about already. {what}",
        f"To take its place, add --if-match '{etag}'. --restore takes it back.",
    )


def stopped_behind(answer: Json, execution: Json | None, error_id: int) -> CommandError:
    """The transaction is applied, one behind it is not. `execution`: the queue's last one."""
    behind = answer["executed"] - 1
    applied = f"Transaction {error_id} is applied"
    if execution and execution["error_id"] == error_id and error_id in execution.get("left_out_ids", []):
        applied = nothing_applied(error_id)
    applied += f", with {behind} behind it" if behind else ""
    return CommandError(f"{applied}. The next one failed: {answer['message']}", "Read what is left in the queue.")


def new_values(values: list[str], nulls: list[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = dict.fromkeys(nulls)
    for pair in values:
        column, equals, value = pair.partition("=")
        if not equals or not column:
            raise CommandError(f"“{pair}” is not COLUMN=VALUE.", "For NULL, give --null COLUMN.")
        if column in found:
            raise CommandError(f"{column} has two values.", "Give each column once.")
        found[column] = value
    if not found:
        raise CommandError("There are no new values.", "Give --set COLUMN=VALUE or --null COLUMN.")
    return found


def edits_in_words(counts: Json) -> str:
    parts = [f"{counts[key]} {words}" for key, words in EDITED.items() if counts.get(key)]
    return f" ({', '.join(parts)})" if parts else ""


def lcrs_in_words(error: Json) -> str:
    return f"{error['lcrs']}{edits_in_words(error)}"


def show_causes(causes: list[Json]) -> None:
    print_table(
        ["CAUSE", ">TRANSACTIONS", "OLDEST", "TABLE", "ERROR", "LIKELY CURE"],
        [
            [
                item["cause"], str(item["transactions"]), item["oldest"][:19], item["table"] or "",
                item["title"] + (f" ({item['object']})" if item["object"] else ""), item["cure"],
            ]
            for item in causes
        ],
    )  # fmt: skip
    out.print()


EDITED = {"left_out": "left out", "edited": "edited", "settled": "settled by error handlers"}
MARKS = {True: "≠ ", False: "", None: ""}


def values_in_words(values: dict[str, str | None]) -> str:
    return ", ".join(f"{column} = {'NULL' if value is None else value}" for column, value in values.items())


def edit_in_words(edit: Json) -> str:
    what = "Left out" if edit["left_out"] else f"Edited: {values_in_words(edit['values'])}"
    return f"{what}. Reason: {edit['reason']}"


def show_tree(error_id: int, found: Json) -> None:
    """Each below the one that it follows from."""
    if found["behind_total"]:
        out.print(f"Transaction {error_id} waits behind {behind_in_words(found)}.")
    if not found["total"]:
        out.print(f"No transaction waits behind {error_id}.")
        return
    depths = {error_id: 0}
    wait = "waits" if found["total"] == 1 else "wait"
    out.print(f"{found['total']} {wait} behind {error_id}:")
    for item in found["dependants"]:
        # The parent of one may stand on an earlier page.
        depth = depths[item["id"]] = depths.get(item["parent"], 0) + 1
        others = f", behind {behind_in_words(item)}" if item["behind_total"] > 1 else f", behind {item['parent']}"
        tables = ", ".join(item["tables"])
        out.print(
            line(f"{'  ' * depth}{item['id']}  {item['commit_lsn']}  {lcrs_in_words(item)} LCRs  {tables}{others}")
        )
    if found["next_cursor"]:
        out.print(f"There are more: --tree {error_id} --cursor {found['next_cursor']}")


def behind_in_words(item: Json) -> str:
    more = item["behind_total"] - len(item["behind"])
    return ", ".join(str(error_id) for error_id in item["behind"]) + (f" and {more} more" if more > 0 else "")


def show_contents(contents: Json, after: int) -> None:
    error = contents["error"]
    failed = error.get("failed_change")
    out.print(f"Transaction {error['id']} (xid {error['xid']}): {error['message']}")
    if error.get("etag") is not None:
        out.print(f"Etag of its edits, for --if-match: {error['etag']}")
    for place, change in enumerate(contents["changes"], after + 1):
        found = change["problem"] or (
            "" if change["rows_found"] is None else f"rows at the destination: {change['rows_found']}"
        )
        out.print()
        number = change.get("number") or place
        mark = "→ " if failed is not None and change.get("number") == failed else ""
        out.print(line(f"{mark}{number}. {change['operation']} {change['schema']}.{change['table']}  {found}"))
        if mark:
            out.print("   The transaction failed at this change.")
        if change.get("edit"):
            out.print(line(f"   {edit_in_words(change['edit'])}"))
        print_table(
            ["COLUMN", "WANTED", "BEFORE", "NOW AT THE DESTINATION"],
            [
                [
                    column["name"] + (" (key)" if column["identity"] else ""),
                    MARKS[column["wanted_differs"]] + value_in_words(column["wanted"]),
                    MARKS[column["before_differs"]] + value_in_words(column["before"]),
                    value_in_words(column["now"]),
                ]
                for column in change["columns"]
            ],
        )
    numbers = [change.get("number") or place for place, change in enumerate(contents["changes"], after + 1)]
    if not numbers:
        out.print(f"It has {contents['changes_total']} changes, and none with a higher number than {after}.")
    elif len(set(numbers)) < contents["changes_total"]:
        out.print(f"\nChanges {numbers[0]} to {numbers[-1]} of {contents['changes_total']} are shown.")
    if contents.get("next_after") is not None:
        out.print(f"There are more: --show {error['id']} --after {contents['next_after']}")
    if failed is not None and failed not in numbers:
        out.print(f"The transaction failed at change {failed}: --show {error['id']} --after {failed - 1}")


def value_in_words(value: Json) -> str:
    if value["text"] is None:
        return {"null": "NULL", "unchanged": "unchanged, not sent"}.get(value["state"], "–")
    return str(value["text"]) + (f"… (cut: {value['bytes']} bytes)" if value["cut"] else "")
