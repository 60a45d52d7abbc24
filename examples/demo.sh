#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the scripted agent on a fresh copy of the leap-year project, in a sandbox. `./dev demo` calls this.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
build=$(realpath "${CLOCHE_BUILD:-build}")
project=$build/demo/leap-year

rm -rf "$build/demo"
mkdir -p "$build/demo"
cp -r examples/leap-year "$project"
echo "API_KEY=not-a-real-one" >"$project/.env"
# The copy belongs to whoever called sudo, as their own project would.
[ -z "${SUDO_UID:-}" ] || chown -R "$SUDO_UID:${SUDO_GID:-0}" "$build/demo"

echo "A scripted agent works on $project; nothing it does there reaches the folder."
echo
cd "$project"
"$build/cloche" run --task "fix leap-year parsing" -m "$root/examples:/agent:ro" -m "$project:$project:cow" \
	-w "$project" -- python3 /agent/agent.py
echo
grep -q '% 400' leap.py && { echo "demo: the folder was changed without being asked" >&2; exit 1; }
echo "The folder is as it was. To see what the agent changed, and to take it over:"
echo
echo "    ${SUDO_UID:+sudo }$build/cloche changes last"
echo "    ${SUDO_UID:+sudo }$build/cloche apply last"
