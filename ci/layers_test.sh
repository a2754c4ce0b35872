#!/usr/bin/env bash
# Fails if a package leans on one that it must not know. The allowed arrows:
#
#   base <- tuning <- ops     <- suites           <- cli
#           tuning <- tracker <- suites, reports  <- cli
#   base, tuning, ops <- graph <- suites, reports <- cli
#   tracker <- carbon, fleet                      <- cli
#   ops, suites, tracker <- diagnosis             <- cli
#   base, tuning, ops <- lib, on which nothing leans
#
# and nothing that ships leans on what only judges it, an evaluation/ folder, or
# on what only its tests need, a testing/ folder.
#
# Argument: the edges of the target graph, as bazel query --output=graph prints
# them.
set -euo pipefail

awk '
  BEGIN {
    allow["base"] = "base"
    allow["tuning"] = "base tuning"
    allow["ops"] = "base tuning ops"
    allow["lib"] = "base tuning ops lib"
    allow["tracker"] = "base tuning tracker"
    allow["graph"] = "base tuning ops graph"
    allow["carbon"] = "base tuning tracker carbon"
    allow["fleet"] = "base tuning tracker fleet"
    allow["suites"] = "base tuning ops graph tracker suites"
    allow["reports"] = "base tuning graph tracker reports"
    allow["diagnosis"] = "base tuning ops tracker suites diagnosis"
    # docs holds the JSON schemas that the command line prints.
    allow["cli"] = "base tuning ops graph tracker carbon fleet suites diagnosis reports cli docs"
  }
  function layer(label,  name) {
    if (label !~ /^\/\//) return ""  # another repository
    name = substr(label, 3)
    sub(/[\/:].*/, "", name)
    return name
  }
  # The binaries and tests that the operator macro generates, and //ops:all,
  # are leaves: nothing that a library may lean on.
  function is_leaf(label) {
    return label ~ /^\/\/ops\/[^:]*:[a-z0-9_]*_(bench|tune|test)$/
  }
  match($0, /^ *"[^"]*" -> "[^"]*"/) {
    split($0, part, "\"")
    from = part[2]; to = part[4]
    ++edges
    if (to ~ /\/evaluation[\/:]/) {
      print "forbidden: " from " -> " to " (evaluation/ ships with nothing)"
      ++bad
    }
    if (to ~ /\/testing[\/:]/ && from !~ /\/testing[\/:]/) {
      print "forbidden: " from " -> " to " (testing/ is for tests alone)"
      ++bad
    }
    a = layer(from); b = layer(to)
    if (a == "" || b == "" || !(a in allow) || is_leaf(from)) next
    if (b == "third_party") next
    ++checked
    if (index(" " allow[a] " ", " " b " ") == 0) {
      print "forbidden: " from " -> " to " (" a " may lean on: " allow[a] ")"
      ++bad
    }
  }
  END {
    # A graph that was not read must not pass for a clean one.
    if (checked < 200) {
      print "only " checked + 0 " of " edges + 0 " edges checked: is the graph complete?"
      exit 1
    }
    print checked " edges checked, " bad + 0 " forbidden"
    exit bad > 0
  }
' "$1"
