#!/bin/bash
# Writes what is derived from the contract: rummikubv1 (from proto/) and rummikub/service_config.json (a copy, because a
# Go module embeds only its own files). With --check, writes nothing and fails if a committed file is out of date.
# Requires buf: the one of the repository's .venv (`make setup`), or BUF=/path/to/buf. Works offline once
# `go mod download` has run.
set -euo pipefail
cd "$(dirname "$0")"
BUF=${BUF:-../../.venv/bin/buf}
[[ "${1:-}" == "" || "${1:-}" == --check ]] || { echo "usage: $0 [--check]" >&2; exit 2; }

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"$BUF" generate ../.. --path ../../proto/rummikub --output "$fresh"
mkdir "$fresh/rummikub"
cp ../service_config.json "$fresh/rummikub/"

if [[ "${1:-}" == --check ]]; then
  diff -rq "$fresh/rummikubv1" rummikubv1 && cmp "$fresh/rummikub/service_config.json" rummikub/service_config.json \
    || { echo "generated code is not that of the contract: run clients/go/generate.sh" >&2; exit 1; }
else
  rm -rf rummikubv1
  cp -r "$fresh/rummikubv1" .
  cp "$fresh/rummikub/service_config.json" rummikub/
fi
