"""The main job, end to end: plan, host, train against it, be refused a switch, save, be
killed, come back with every byte.

Run by tools/demo. Exit code 1 if anything it claims is not so.
"""

import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import planewise
import pretrained
import synthetic
import tasks
from daemon import Daemon

SEED = 20
MODEL = "minilm"
# The score must beat the untrained model and the majority class by this much.
MARGIN = 0.25
OVERRIDES = ("none", "high_precision", "dequantized")


class Progress:
    """A line that is drawn over itself on a terminal, and nothing elsewhere."""

    def __init__(self, what):
        self._what = what
        self._shown = sys.stderr.isatty()

    def show(self, done, total, note=""):
        if not self._shown:
            return
        share = done / total if total else 1.0
        filled = int(share * 24)
        bar = "#" * filled + " " * (24 - filled)
        print(f"\r\x1b[K{self._what:<9} [{bar}] {share:4.0%}  {note}", end="", file=sys.stderr)
        sys.stderr.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr)


class Claims:
    """What the demo shows, one line each, and whether it was so."""

    def __init__(self):
        self._lines = []

    def add(self, holds, text):
        self._lines.append((bool(holds), text))

    def report(self):
        print("\nWhat was shown")
        for holds, text in self._lines:
            print(f"  {'yes' if holds else 'NO '}  {text}")
        return all(holds for holds, _ in self._lines)


def heading(text):
    print(f"\n{text}")


def show_plan(cli, model_directory):
    """Bytes per plane for each override. Returns {override: plan}."""
    plans = {}
    heading("Plan: bytes of the hosted weights, before anything is loaded")
    titles = f"{'row plane':>14}{'column plane':>14}{'bias':>10}{'total':>14}"
    print(f"  {'backward_override':<18}{titles}")
    for override in OVERRIDES:
        command = [cli, "plan", str(model_directory), "--backward-override", override]
        output = subprocess.run([*command, "--output", "json"], check=True, capture_output=True)
        plan = plans[override] = json.loads(output.stdout)
        totals = plan["totals"]
        row, column = (sum(totals[plane].values()) for plane in ("row", "column"))
        print(
            f"  {override:<18}{row:>14,}{column:>14,}{totals['bias_bytes']:>10,}"
            f"{totals['persistent_bytes']:>14,}"
        )
    return plans


def load(client, model_directory):
    with Progress("load") as progress:
        return client.create_model(
            MODEL,
            model_directory,
            planewise.MXFP8BlockScaling(backward_override="dequantized"),
            progress=lambda event: progress.show(
                int(event["done_bytes"]), int(event["total_bytes"]), event["object"]
            ),
        )


def run_training(name, classifier, data, tokenize, schedule, end_step=None):
    """Returns (accuracy on the scored part before, after, seconds)."""
    examples, scored = data
    before = tasks.accuracy(classifier, scored, tokenize)
    begin = time.monotonic()
    with Progress(name) as progress:
        tasks.train(
            classifier,
            examples,
            tokenize,
            schedule,
            SEED,
            lambda step, steps, loss: progress.show(step, steps, f"loss {loss:.3f}"),
            end_step,
        )
    seconds = time.monotonic() - begin
    return before, tasks.accuracy(classifier, scored, tokenize), seconds


def planes_digest(client):
    """SHA-256 over name, shape and bytes of every stored plane and bias, and their count."""
    digest = hashlib.sha256()
    count = 0
    for plane in ("row", "high_precision"):  # of the weights, of the biases
        for part in client.read_weights(MODEL, plane=plane):
            digest.update(f"{part.weight} {part.plane} {part.part} {part.shape}".encode())
            digest.update(part.data)
            count += 1
    return digest.hexdigest(), count


def train_both(client, model_directory, tickets, synthetic_model, claims):
    weights = synthetic if synthetic_model else pretrained
    tokenize = weights.load_tokenizer(model_directory)
    examples, held_out, classes = tasks.load_tickets(tickets, SEED)
    # A random encoder has nothing to generalise from: there the score says whether training
    # against the daemon fits its examples at all.
    where, scored = ("training", examples) if synthetic_model else ("held-out", held_out)
    schedule = tasks.RANDOM if synthetic_model else tasks.PRETRAINED
    data = examples, scored
    majority = tasks.majority_accuracy(examples, scored)

    heading(
        f"Training: LoRA rank {tasks.LORA_RANK} on {len(examples)} requests in {len(classes)} "
        f"classes, {len(held_out)} held out"
    )
    remote_model = tasks.make_classifier(weights, model_directory, len(classes), SEED)
    remote = planewise.attach(remote_model.encoder, client, MODEL)
    for line in remote.report().splitlines():
        print(f"  {line}")
    untrained, remote_score, remote_seconds = run_training(
        "remote", remote_model, data, tokenize, schedule, remote.end_step
    )
    local_model = tasks.make_classifier(weights, model_directory, len(classes), SEED)
    _, local_score, local_seconds = run_training("local", local_model, data, tokenize, schedule)
    remote.close()

    print(f"  {'':<36}{where + ' accuracy':>18}{'seconds':>10}")
    for name, score, seconds in (
        ("majority class", majority, None),
        ("untrained", untrained, None),
        ("base hosted in MXFP8, adapters here", remote_score, remote_seconds),
        ("all local in BF16", local_score, local_seconds),
    ):
        took = f"{seconds:>10.1f}" if seconds is not None else ""
        print(f"  {name:<36}{score:>18.1%}{took}")
    floor = max(majority, untrained) + MARGIN
    claims.add(
        remote_score >= floor,
        f"trained against the daemon: {where} accuracy {remote_score:.1%}, at least "
        f"{MARGIN * 100:.0f} points above majority ({majority:.1%}) and untrained "
        f"({untrained:.1%}); local BF16 {local_score:.1%}",
    )


def refused_switch(client, claims):
    heading("Switch to backward_override=none")
    validation = client.validate_switch(MODEL, planewise.MXFP8BlockScaling("none"))
    verdict = validation["verdict"].replace("SWITCH_VERDICT_", "")
    print(f"  validate: {verdict}, {validation['needs_master_count']} weights need masters")
    reason = validation["weights"][0]["reasons"][0]
    print(f"  {reason['code']}: {reason['rule']}")
    for remedy in reason["remedies"]:
        print(f"  remedy: {remedy['action'].replace(str(pathlib.Path.home()), '~')}")
    try:
        client.switch_mode(MODEL, planewise.MXFP8BlockScaling("none"))
        refused = None
    except planewise.PlanewiseError as error:
        refused = error
    claims.add(
        refused is not None and refused.reason == "COLUMNWISE_MISSING" and reason["remedies"],
        "a switch to the default backward is refused before any compute, with its remedies "
        f"({refused.reason if refused else 'it was NOT refused'})",
    )


def save_kill_restart(daemon, client, cli, claims):
    """Returns the client of the restarted daemon."""
    heading("Save, SIGKILL, restart")
    saved = client.save(MODEL)
    print(f"  saved version {saved['version']}: {int(saved['written_bytes']):,} bytes on disk")
    before, count = planes_digest(client)
    daemon.kill()
    client.close()
    print("  killed the daemon")
    client = daemon.start()
    while client.describe(MODEL)["state"] == "MODEL_STATE_LOADING":
        time.sleep(0.05)
    after, _ = planes_digest(client)
    print(f"  before  sha256 {before}\n  after   sha256 {after}")
    command = [cli, "verify", MODEL, "--target", daemon.target, "--output", "json"]
    verified = json.loads(subprocess.run(command, check=False, capture_output=True).stdout)
    claims.add(before == after, f"after kill -9 and restart all {count} stored arrays are the same")
    claims.add(
        verified.get("ok"),
        f"planewise verify: {verified.get('tensor_count', 0)} arrays in memory and on disk have "
        "the checksums they were written with",
    )
    return client


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--daemon", required=True, help="planewised")
    parser.add_argument("--cli", required=True, help="planewise")
    parser.add_argument("--model", type=pathlib.Path, help="Hugging Face directory")
    parser.add_argument("--synthetic", action="store_true", help="a small random model instead")
    options = parser.parse_args()
    tickets = pathlib.Path(__file__).with_name("tickets.tsv")

    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="planewise-demo-") as folder:
        model_directory = options.model
        if options.synthetic:
            model_directory = pathlib.Path(folder) / "model"
            examples, held_out, _ = tasks.load_tickets(tickets, SEED)
            texts = [text for text, _ in examples + held_out]
            synthetic.make_model(model_directory, texts, SEED)
        plans = show_plan(options.cli, model_directory)
        planned = plans["dequantized"]["totals"]["persistent_bytes"]
        both = plans["none"]["totals"]["persistent_bytes"]
        claims.add(
            planned < both,
            f"backward_override=dequantized saves {both - planned:,} bytes of {both:,}: AUTO keeps "
            "row planes only",
        )

        daemon = Daemon(options.daemon, folder, model_directory)
        try:
            client = daemon.start()
            model = load(client, model_directory)
            heading("Loaded: plan against what the daemon allocated")
            actual = int(model["actual_bytes"])
            print(f"  planned {planned:,} bytes, actual {actual:,} bytes, drift {actual - planned}")
            claims.add(actual == planned, f"plan = actual to the byte: {actual:,}")
            train_both(client, model_directory, tickets, options.synthetic, claims)
            refused_switch(client, claims)
            client = save_kill_restart(daemon, client, options.cli, claims)
            client.close()
        finally:
            daemon.kill()
    return 0 if claims.report() else 1


if __name__ == "__main__":
    sys.exit(main())
