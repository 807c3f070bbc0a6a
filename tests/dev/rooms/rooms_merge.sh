#!/usr/bin/env bash
# What a branch from before the move has, as one commit on a tree that was moved: rooms_merge.sh BRANCH, run in the moved
# tree with nothing uncommitted. The moves are made on the branch and on where it began, in two work trees of their own; what
# is between the two is picked. ROOMS names another rooms.py.
set -euo pipefail
tip=$(git rev-parse "$1^{commit}") base=$(git merge-base HEAD "$1") rooms=$(realpath "${ROOMS:-"$(dirname "$0")/rooms.py"}")
work=$(mktemp -d)
trap 'git worktree remove -f "$work/base" 2>/dev/null || true; git worktree remove -f "$work/tip" 2>/dev/null || true; rm -rf "$work"' EXIT
for which in base tip; do
  git worktree add -q --detach "$work/$which" "${!which}"
  (cd "$work/$which" && if [ -d ir/types ]; then :; else python3 "$rooms" . && git add -A && git commit -qm "Rooms of $which"; fi)
done
tree=$(git -C "$work/tip" rev-parse 'HEAD^{tree}')
picked=$(git commit-tree "$tree" -p "$(git -C "$work/base" rev-parse HEAD)" -m "$(git log -1 --format=%B "$tip")")
git cherry-pick "$picked"
python3 "$rooms" .
