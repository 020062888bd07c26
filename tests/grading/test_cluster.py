"""A Dask cluster over TLS, as on several machines: equal results, though a worker is killed."""

import datetime
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from inferlab.grading.record import Gradebook
from inferlab.quantities import InputError

pytestmark = pytest.mark.needs("bubblewrap")
STUDENTS = [
    "reference", "untouched", "number-as-text", "kills-its-kernel", "forges-receipts", "ids-lost",
    "answer-cell-copied", "old-format", "syntax-error", "equivalent-forms", "cells-added", "raises",
]  # fmt: skip


def write_certificates(folder):
    """An authority, and one certificate signed by it for scheduler, workers and client."""

    def make(name, signer, issuer):
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer or subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(
                x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True
            )
            .sign(signer or key, hashes.SHA256())
        )
        (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        (folder / f"{name}.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return key, subject

    authority, name = make("authority", None, None)
    make("grader", authority, name)
    return [str(folder / file) for file in ("authority.pem", "grader.pem", "grader.key")]


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers, each a process of its own: address, certificates, workers."""
    authority, certificate, key = certificates = write_certificates(tmp_path)
    tls = ["--tls-ca-file", authority, "--tls-cert", certificate, "--tls-key", key]
    where = tmp_path / "scheduler.json"
    processes = []

    def start(module, *arguments):
        command = [sys.executable, "-m", module, *arguments, *tls]
        with open(tmp_path / f"log-{len(processes)}", "w") as log:
            processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path))
        return processes[-1]

    start(
        "distributed.cli.dask_scheduler", "--protocol", "tls", "--host", "127.0.0.1", "--port", "0",
        "--no-dashboard", "--dashboard-address", ":0", "--scheduler-file", str(where),
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not where.is_file() and time.monotonic() < deadline:
        time.sleep(0.1)
    address = json.loads(where.read_text())["address"]
    workers = [
        start(
            "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--memory-limit", "0",
            "--no-dashboard", "--dashboard-address", ":0", "--local-directory", str(tmp_path / f"w{number}"),
        )
        for number in range(2)
    ]  # fmt: skip
    yield address, tuple(certificates), workers
    for process in processes:
        process.kill()
        process.wait()


def test_two_processes_over_tls_and_one_of_them_killed(
    cluster, graded, grade_class, hostile_class, tmp_path
):
    address, certificates, workers = cluster
    assert address.startswith("tls://")
    course = tmp_path / "course"
    killed_after = []

    def kill_one():
        url = f"sqlite:///{course / 'gradebook.db'}"
        while not killed_after and not (course / "nbgrader_config.py").is_file():
            time.sleep(0.05)
        book = Gradebook(url)
        while not killed_after:
            done = len(book.recorded())
            book.session.rollback()
            if done >= 2:
                os.kill(workers[0].pid, 9)
                killed_after.append(done)
            time.sleep(0.02)
        book.close()

    killer = threading.Thread(target=kill_one)
    killer.start()
    try:
        spread = grade_class(
            [hostile_class / name for name in STUDENTS],
            course,
            scheduler=address,
            certificates=certificates,
        )
    finally:
        killed_after.append(None)
        killer.join()
    assert killed_after[0] is not None and killed_after[0] < len(STUDENTS)
    assert workers[0].wait() == -9
    assert spread.summary.failed == []
    assert spread.comparable(STUDENTS) == graded.comparable(STUDENTS)


def test_a_scheduler_that_is_not_there_is_one_sentence(grade_class, hostile_class, tmp_path):
    certificates = tuple(write_certificates(tmp_path))
    with pytest.raises(InputError, match="no scheduler answers"):
        grade_class(
            [hostile_class / "reference"],
            tmp_path / "course",
            scheduler="tls://127.0.0.1:9",
            certificates=certificates,
        )
