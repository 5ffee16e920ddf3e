#!/bin/sh
# Runs its arguments with a Python that is new enough: $PYTHON when it is set, else the first of the usual names.
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

if [ -n "${PYTHON:-}" ]; then
    if ! new_enough "$PYTHON"; then
        echo "PYTHON=$PYTHON is not a Python 3.11 or newer that runs here." >&2
        exit 2
    fi
    exec "$PYTHON" "$@"
fi
for name in python3 python3.13 python3.14 python3.12 python3.11 python; do
    if new_enough "$name"; then exec "$name" "$@"; fi
done
echo "Python 3.11 or newer is needed and none was found: install it, or name it with PYTHON=/path/to/python3.11." >&2
exit 2
