#!/usr/bin/env bash
# Puts a Markdown file into a comment of a pull request: one comment, updated
# each time. An example for code hosts that GitHub's command line talks to; for
# another, replace the two calls of `gh api`.
#
#   ci/comment.sh PULL_REQUEST FILE.md [NAME]
#
# A hidden marker with NAME (default gate) finds the comment again. Only one that
# the same account wrote counts: anybody can copy a marker.
set -euo pipefail

if [ $# -lt 2 ]; then
  echo "usage: ci/comment.sh PULL_REQUEST FILE.md [NAME]" >&2
  exit 2
fi
number=$1
file=$2
marker="<!-- optrail:${3:-gate} -->"
case $number in
*[!0-9]* | '') echo "comment: '$number' is no number of a pull request" >&2 && exit 2 ;;
esac

# Code hosts refuse more than 65536 characters.
body=$(mktemp)
trap 'rm -f "$body"' EXIT
{
  echo "$marker"
  head -c 60000 "$file" | iconv -c -f UTF-8 -t UTF-8
  [ "$(wc -c <"$file")" -le 60000 ] || printf '\n\nThe rest was cut off.\n'
} >"$body"

account=$(gh api user --jq .login)
comments=repos/{owner}/{repo}/issues/$number/comments
found=$(gh api --paginate "$comments" --jq \
  ".[] | select(.user.login == \"$account\" and (.body | startswith(\"$marker\"))) | .id" |
  head -n 1)
if [ -n "$found" ]; then
  gh api --method PATCH "repos/{owner}/{repo}/issues/comments/$found" \
    --field body=@"$body" --silent
else
  gh api --method POST "$comments" --field body=@"$body" --silent
fi
