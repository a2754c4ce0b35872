#!/usr/bin/env bash
# The command line as a newcomer types it: what is said, and the exit code.
#   optrail_test.sh OPTRAIL
set -uo pipefail

optrail=$PWD/$1
sources=$PWD/cli
scratch=$(mktemp -d "$TEST_TMPDIR/trial_XXXXXX")
export GIT_CEILING_DIRECTORIES=$TEST_TMPDIR
export BUILD_WORKSPACE_DIRECTORY=$scratch BUILD_WORKING_DIRECTORY=$scratch
cd "$scratch"

# expect CODE TEXT ARGUMENT...: runs it; its output holds TEXT.
expect() {
  local code=$1 text=$2 output got
  shift 2
  output=$("$optrail" "$@" 2>&1)
  got=$?
  if [[ $got != "$code" || $output != *"$text"* ]]; then
    echo "FAILED: optrail $*"
    echo "expected exit code $code and: $text"
    echo "got exit code $got and: $output"
    exit 1
  fi
}

expect 0 "optrail " --version
expect 0 "optrail " version
expect 2 "did you mean --version?" --versoin
expect 2 "flags come after it: optrail COMMAND --history=x" --history=x log
expect 2 "next: optrail help log" log --histroy=x

# A mistyped folder is no empty history; the default one is.
for command in log show compare gate changes report triage convergence; do
  expect 2 "--history=$scratch/nosuch: there is no such folder" \
    "$command" --history=nosuch
done
expect 0 "optrail import FILE" log
expect 3 "optrail import FILE" changes
mkdir other && touch other/notes.txt
for command in log show compare gate changes report; do
  expect 2 "--history=$scratch/other: that folder is no history" \
    "$command" --history=other
done
expect 2 "there is no folder $scratch/nosuch" demo --out=nosuch/demo
# The report opens where somebody looks: at a terminal of a desktop.
mkdir tools
printf '#!/bin/sh\necho "$1" >>"%s/opened"\n' "$scratch" >tools/xdg-open
chmod +x tools/xdg-open
demo() {
  env PATH="$scratch/tools:$PATH" CI= DISPLAY=:0 "$@" >said
}
demo script -qec "$optrail demo --out=shown" /dev/null
for _ in {1..600}; do [[ -s opened ]] && break || sleep .1; done
[[ $(cat opened) == "$scratch/shown/report.html" ]] ||
  { echo "FAILED: demo opened $(cat opened)"; exit 1; }
demo script -qec "$optrail demo --out=closed --open=false" /dev/null
demo env CI=true script -qec "$optrail demo --out=in_ci" /dev/null
demo "$optrail" demo --out=piped
grep -q "xdg-open $scratch/piped/report.html" said
[[ $(wc -l <opened) == 1 ]] || { echo "FAILED: demo opened"; exit 1; }
expect 2 "optrail import FILE" compare
expect 3 "optrail import" gate
expect 2 "--looks: means nothing with --run" gate --run=true --looks=3
expect 2 "--max_rounds=0: expected at least 5" gate --run=true --max_rounds=0
expect 2 "--remeasure_out: means nothing with --run" gate --run=true \
  --remeasure_out=again.txt
expect 2 "optrail import FILE" show
expect 0 "optrail import FILE" report --out=empty.html

expect 2 "--filter='(' is no regular expression" log series --filter='('
# A flag without an effect is refused, not ignored.
expect 2 "--filter: means nothing for log runs" log --filter=x
expect 2 "--max_rounds: means nothing without --run" gate --max_rounds=9
expect 2 "--hardware: means nothing with --run and without --record" gate \
  --run=true --hardware=x
expect 2 "--build: means nothing with --binaries" compare --binaries a b \
  --build=make
expect 2 "--record: means nothing without --binaries or --commits" compare a b \
  --record
expect 2 "--rebuild: means nothing for history thin" history thin --rebuild
expect 2 "did you mean --keep_runs?" history thin --keep_run=3
expect 2 "--limit=-1: expected at least 0" log --limit=-1
expect 2 "--parallel=0: expected 1 to" tune --command=x --space=s \
  --metric=time:min --parallel=0
expect 2 "--jobs=-1: expected at least 0" replay --spaces=x --jobs=-1
expect 2 "--probe_time=-1s: expected" doctor --probe_time=-1s
expect 2 "--process_deadline=0: expected" compare --binaries a b \
  --process_deadline=0s

expect 0 "nothing to promote" store promote
expect 0 "holds nothing new" store promote --workload=smoke
expect 2 "--op with --workload" store promote --workload=smoke --op=add
expect 2 "--dry_run without --workload" store promote --dry_run
mkdir -p .optrail/store/add
cat >.optrail/store/add/hw.textproto <<'END'
operator_name: "add" hardware_id: "hw" device_kind: CPU
tuned { shape: "n=1/f32" config: "u=1" threads: 1 cache_mode: HOT }
END
expect 2 "declares operator \"add\"" store promote
expect 3 "  on hw: optrail tune --op=add --shape='n=1/f32' --retune --numerics=class-of-default" \
  store diff --numerics=same
cp -r .optrail/store .optrail/joules
sed -i 's|^tuned {|& objective: "time:min@2,joules:min@1<=0.5"|' .optrail/joules/add/hw.textproto
expect 3 " --objective='time,joules<=0.5' --weights=2,1 --store=.optrail/joules --retune" \
  store diff --numerics=same --store=.optrail/joules
sed -i 's|time:min.*0.5"|cost_0.25_per_kwh_0_per_hour"|' .optrail/joules/add/hw.textproto
expect 3 " --objective=cost --price_per_kwh=0.25 --store=" \
  store diff --numerics=same --store=.optrail/joules
rm -r .optrail/joules
mkdir -p .optrail/store/scan
cat >.optrail/store/scan/hw.textproto <<'END'
operator_name: "scan" hardware_id: "hw" device_kind: CPU
best {
  shape: "n=1/f32" threads: 1 cache_mode: HOT
  entries { backend: "plain" id: "1" time_ns: 10 ratio: 1 }
  entries { id: "2" time_ns: 15 ratio: 1.5 }
  refused { backend: "halide" id: "3" why: "UNSUPPORTED" }
}
END
expect 0 "best: plain" store show
expect 0 "1.50x" store show --op=scan
[[ $("$optrail" store show --op=scan) != *u=1* ]] ||
  { echo "FAILED: store show --op"; exit 1; }
rm -r .optrail/store/scan
mkdir -p kernels/sum
echo 'operator(name = "add")' >kernels/sum/BUILD
expect 0 "kernels/sum/tuned/hw.textproto" store promote
# Configs that were checked in since the build are none of this program's.
expect 0 "checked in, not built in" store show --op=add
expect 0 "was built before 1 checked-in config, and runs without it" store show
expect 0 "and runs without it" store check --op=add --dry_run
expect 2 "no operator matches --op=nosuch" store check --op=nosuch
# Operators that no build of this program has, and files that can't be read.
mkdir -p kernels/other/tuned
echo 'operator(name = "other")' >kernels/other/BUILD
sed 's/"add"/"other"/' kernels/sum/tuned/hw.textproto >kernels/other/tuned/hw.textproto
expect 0 "hw, checked in " store show --op=other
[[ $("$optrail" store show --op=other 2>&1) != *built* ]] ||
  { echo "FAILED: store show of an operator that is not linked"; exit 1; }
echo '<<<<<<< HEAD' >kernels/other/tuned/hw.textproto
expect 0 "note: not compared with the configs in this program: " \
  store check --op=add --dry_run
rm -r kernels/other
# Two branches that promoted, merged.
cat >>kernels/sum/tuned/hw.textproto <<'END'
tuned { shape: "n=2/f32" config: "u=1" threads: 1 cache_mode: HOT
        session_id: "20261120T081500Z-0f1e2d3c4b5a" }
tuned { shape: "n=2/f32" config: "u=2" threads: 1 cache_mode: HOT
        session_id: "20261121T081500Z-0f1e2d3c4b5a" }
END
expect 0 "u=2" store show --op=add
expect 0 "that of 20261121T081500Z-0f1e2d3c4b5a, the later one, is used" \
  store mend
expect 0 "nothing to mend" store mend
[[ ! -e .optrail/store/add/hw.textproto ]] || { echo "FAILED: not moved"; exit 1; }
rm -r kernels
expect 2 "there is no folder /no/such/folder" bench --op=add \
  --benchmark_out=/no/such/folder/x.json

# A limit on the size of files is an error of the command, not a signal.
cat > results.json <<'END'
{"context": {}, "benchmarks": [{"name": "BM_x", "real_time": 1, "iterations": 9}]}
END
(ulimit -f 0; "$optrail" import results.json >limited.txt 2>&1 || exit $?) 2>&1
[[ $? == 2 ]] || { echo "FAILED: import under ulimit -f 0"; exit 1; }
expect 0 "" import results.json
# Streams get what was asked for and nothing else.
[[ $("$optrail" history export --out=/dev/stdout 2>&1 | tail -1) == BM_x* ]] ||
  { echo "FAILED: a message in the exported points"; exit 1; }
expect 0 "1.00 ns" show BM_x
# As Google Benchmark names them, also where another name goes on from there.
cat > arguments.json <<'END'
{"context": {}, "benchmarks": [
  {"name": "BM_sort/64", "real_time": 2, "iterations": 9},
  {"name": "BM_sort/640", "real_time": 3, "iterations": 9}]}
END
expect 0 "" import arguments.json
expect 0 "2.00 ns" show BM_sort/64
expect 2 "could be any of" show BM_sort
expect 2 "no benchmark's name begins so" show BM_sort/7

# Any command is tuned, recorded, and not tuned again until its program changes.
expect 2 "--space: means nothing without --command" \
  tune --space=sleep.space.textproto
expect 2 "--command_memory_mib: means nothing without --command" \
  tune --command_memory_mib=100
expect 2 "--max_config_mib: means nothing with --command" tune --command=x \
  --space=s --metric=time:min --max_config_mib=100
expect 2 "--total_time: means nothing with --command" tune --command=x \
  --space=s --metric=time:min --total_time=1m
cat > sleep.space.textproto <<'END'
knob { name: "x" ints: [1, 2, 40] }
default { set { knob: "x" int: 1 } }
END
echo 'echo "{\"time\": $((100 - $1))}"' > run.sh
tuned=(tune --quiet --space=sleep.space.textproto --metric=time:min
  --command='sh run.sh {x}')
expect 0 "best: sh run.sh 40" "${tuned[@]}"
expect 0 "tuned already, by session" "${tuned[@]}"
expect 0 "recorded: optrail show" "${tuned[@]}" --retune
expect 0 "command_run_sh" log sessions
echo '# changed' >> run.sh
expect 0 "recorded: optrail show" "${tuned[@]}"
# Also behind what only starts it, and with a word to whoever has to name it.
for started in "nice -n 1 sh run.sh {x}" "cd . && sh run.sh {x}" \
  "sh -c 'sh run.sh {x}'"; do
  tuned=(tune --quiet --space=sleep.space.textproto --metric=time:min
    --trials=1 --command="$started")
  expect 0 "recorded: optrail show" "${tuned[@]}"
  expect 0 "tuned already, by session" "${tuned[@]}"
  echo '# changed' >> run.sh
  expect 0 "recorded: optrail show" "${tuned[@]}"
done
printf '#!/bin/sh\nexec sh run.sh "$1"\n' > made.sh && chmod +x made.sh
expect 0 "note: ./made.sh may be made by the command itself" tune --quiet \
  --space=sleep.space.textproto --metric=time:min --trials=1 \
  --command='true && ./made.sh {x}'

# What it printed and what is proven is shown, of each metric that was named.
newest() { "$optrail" log sessions --format=csv | sed -n '2s/,.*//p'; }
expect 0 "paired rounds" show "$(newest)"
echo 'echo "{\"time\": $1, \"bytes\": $((4096 - $1))}"' > front.sh
expect 0 "time  bytes  runs  config" tune --quiet \
  --space=sleep.space.textproto --metric=time:min --metric=bytes:min \
  --command='sh front.sh {x}'
expect 0 "trial  outcome  time  bytes  config" show "$(newest)"
expect 0 " 4056" show "$(newest)"

# A config beyond a limit is neither the best nor the winner, nor is the default.
limited() {
  expect "$1" "$2" tune --quiet --space=sleep.space.textproto --proof_time=1s \
    --metric="time:min,bytes:min<=$3" --command='sh front.sh {x}'
}
limited 0 "beyond bytes<=4094 and may not win; the best config within is " 4094
expect 0 "the best of them with time 2 after trial" show "$(newest)"
expect 0 "winner x=2 with time 2: the default is beyond" show "$(newest)"
limited 1 "no config is within bytes<=99: the nearest is x=40 with bytes 4056" 99
expect 0 "winner none: no config is within bytes<=99" show "$(newest)"
echo '[ -e ran.$1 ] && exit 7; touch ran.$1; echo "{\"time\": $1}"' > once.sh
expect 1 "x=1 failed when it was run again: CRASHED, exited with code 7" tune --quiet \
  --space=sleep.space.textproto --metric=time:min --command='sh once.sh {x}'

# A second call waits for the first, and finds its answer.
echo 'sleep .2; echo "{\"time\": $((100 - $1))}"' > slow.sh
slow=(tune --quiet --space=sleep.space.textproto --metric=time:min
  --proof_time=1s --command='sh slow.sh {x}')
"$optrail" "${slow[@]}" >first.txt 2>&1 &
first=$!
for _ in {1..100}; do
  [[ -n $(find .optrail/state/commands -name '*.journal') ]] && break || sleep .1
done
output=$("$optrail" "${slow[@]}" 2>&1) ||
  { echo "FAILED: second call: $output"; exit 1; }
[[ $output == *"note: waits: journal "*"tuned already, by session"* ]] ||
  { echo "FAILED: did not wait: $output"; exit 1; }
wait "$first" || { echo "FAILED: $(<first.txt)"; exit 1; }

# A worker that is not there is no finding about a config.
expect 2 "Connection refused; next: mend the cause" tune --quiet --op=add \
  --shape=n=64/f32 --worker=localhost:1

# Also in sessions of their own, processes have their memory together.
cat > crowd.sh <<'END'
if [ "$1" = 2 ]; then
  for i in 1 2 3 4; do
    setsid sh -c 'x=$(head -c 40000000 /dev/zero | tr "\0" x); sleep 100' &
  done
  sleep 100
fi
echo "{\"time\": $((100 - $1))}"
END
expect 0 "1 x OUT_OF_MEMORY, first: x=2" tune --quiet --metric=time:min \
  --space=sleep.space.textproto --command='sh crowd.sh {x}' \
  --command_memory_mib=100

# What a machine lacks (a binary alone, the compilers of generated kernels) is no
# failure of all backends, and what is proposed next can be typed.
cp "$optrail" alone
bench=(bench --quiet --processes=1 --benchmark_min_time=0.001 --op=add
  --shape=n=64/f32)
output=$(env -u RUNFILES_DIR -u TEST_SRCDIR ./alone "${bench[@]}" \
  --backend=all 2>&1)
code=$?
[[ $output == *"unsupported here"* ]] && ((code == 0)) ||
  [[ $output == *CONTENDED* ]] ||
  { echo "FAILED: --backend=all: $code: $output"; exit 1; }
output=$("$optrail" "${bench[@]}" --backend=best 2>&1)
grep -Eq "next: optrail (tune|bench) .*--backend=all" <<<"$output" ||
  { echo "FAILED: --backend=best: $output"; exit 1; }

# A bench that is told to end, or killed, goes on from what it had measured, and
# is recorded once, as one run of all its processes.
interrupted=(bench --quiet --op=add --shape=n=393216 --select=default
  --processes=80 --benchmark_min_time=0.001 --record --history=interrupted)
# measured_until BYTES SIGNAL ARGUMENT...: ends it once its journal is so long.
measured_until() {
  local bytes=$1 signal=$2 child size
  shift 2
  "$optrail" "${interrupted[@]}" "$@" >interrupted.txt 2>&1 &
  child=$!
  while size=$(cat .optrail/state/bench/*.journal 2>/dev/null | wc -c);
    ((size < bytes)) && kill -0 "$child" 2>/dev/null; do
    sleep 0.02
  done
  kill -"$signal" "$child" 2>/dev/null
  wait "$child" 2>/dev/null
}
measured_until 2000 TERM
grep -q "the same command with --resume goes on" interrupted.txt ||
  { echo "FAILED: interrupted: $(<interrupted.txt)"; exit 1; }
measured_until 6000 KILL --resume
grep -q "goes on: [1-9][0-9]* of 80 processes" interrupted.txt ||
  { echo "FAILED: resumed: $(<interrupted.txt)"; exit 1; }
first=$(grep -o "goes on: [0-9]*" interrupted.txt | grep -o "[0-9]*")
output=$("$optrail" "${interrupted[@]}" --resume 2>&1)
second=$(grep -o "goes on: [0-9]*" <<<"$output" | grep -o "[0-9]*")
((second > first)) ||
  { echo "FAILED: killed: $first, then $second: $output"; exit 1; }
[[ $(find interrupted/runs -name '*.pb' | wc -l) == 1 ]] ||
  { echo "FAILED: not one run: $output"; exit 1; }
[[ -z $(find .optrail/state/bench -name '*.journal') ]] ||
  { echo "FAILED: the journal stays"; exit 1; }
[[ $("$optrail" "${interrupted[@]}" --resume --processes=1 2>&1) == \
  *"nothing to resume"* ]] || { echo "FAILED: nothing to resume"; exit 1; }

# So does tuning what has been tuned: what the interrupted call had finished is
# not tuned once more.
again=(tune --quiet --op=add '--shape=n=(39|80)' --trials=3 --proof_time=50ms
  --history=again --store=again_store)
"$optrail" "${again[@]}" >/dev/null 2>&1
sessions() { find again/sessions -name '*.pb' | wc -l; }
count=$(sessions)
((count == 2)) || { echo "FAILED: $count sessions"; exit 1; }
"$optrail" "${again[@]}" --retune >again.txt 2>&1 &
child=$!
while (($(sessions) < count + 1)) && kill -0 "$child" 2>/dev/null; do
  sleep 0.01
done
kill -KILL "$child" 2>/dev/null
wait "$child" 2>/dev/null
# Another call is none of it, and has to tune.
output=$("$optrail" "${again[@]}" --retune --trials=4 --shape=n=39 2>&1)
before=$(sessions)
output=$("$optrail" "${again[@]}" --retune 2>&1)
(($(sessions) == 2 * count + 1 && before > count + 1)) ||
  { echo "FAILED: $before, then $(sessions) sessions of $count: $output"
    exit 1; }
grep -q "goes on: [12] of 2 tasks were tuned by this command" <<<"$output" ||
  { echo "FAILED: goes on in silence: $output"; exit 1; }
# The kill may leave the temporary file of a write that it cut off.
left=$(find .optrail/state/tuning -type f -not -name '.*.tmp-*')
[[ -z $left ]] || { echo "FAILED: $left stays: $output"; exit 1; }

# Of two commands that tune one task the second waits, and finds it tuned.
twice=(tune --quiet --op=add --shape=n=39 --trials=3 --proof_time=50ms
  --history=twice --store=twice_store)
"$optrail" "${twice[@]}" >first.txt 2>&1 &
first=$!
expect 0 "add" "${twice[@]}"
wait "$first" || { echo "FAILED: two commands: $(<first.txt)"; exit 1; }
count=$(find twice/sessions -name '*.pb' | wc -l)
((count == 1)) || { echo "FAILED: tuned $count times: $(<first.txt)"; exit 1; }

# Plans by carbon, and a certificate that is refused once anything changed.
"$optrail" carbon example --zone=DE --start=2026-10-01T00:00:00Z --hours=72 \
  --out=grid.csv
printf 'id,watts,hours,release,deadline,preemptible\n%s\n%s\n' \
  'a,500,3,2026-10-01T00:00:00Z,2026-10-02T00:00:00Z,yes' \
  'b,500,2,2026-10-01T06:00:00Z,2026-10-01T12:00:00Z,no' > jobs.csv
grid=(--intensity=grid.csv --zone=DE)
expect 0 "no plan of these jobs on these machines emits less" carbon plan \
  --jobs_file=jobs.csv --machines=2 "${grid[@]}"
sed 's/no$/yes/' jobs.csv > pausing.csv
expect 0 "no plan of these jobs on these machines emits less" carbon plan \
  --jobs_file=pausing.csv --machines=2 "${grid[@]}"
expect 0 "24h" carbon plan --jobs_file=jobs.csv --slack=0h,24h "${grid[@]}"
expect 2 "--intensity is missing" carbon plan --jobs_file=jobs.csv
expect 2 "grid.csv has no zone \"FR\", expected one of DE" carbon plan \
  --jobs_file=jobs.csv --intensity=grid.csv --zone=FR
expect 2 "--key: means nothing for carbon plan" carbon plan --key=k
for day in 1 2; do
  printf '{"context": {"date": "2026-10-0%dT10:00:00+00:00", "num_cpus": 2,
    "executable": "./b", "caches": []}, "benchmarks": [{"name": "BM_A",
    "run_name": "BM_A", "run_type": "iteration", "repetitions": 1,
    "repetition_index": 0, "threads": 1, "iterations": 9, "real_time": %d.0,
    "cpu_time": 9.0, "time_unit": "ns"}]}' $day $((300 - 100 * day)) > r$day.json
done
expect 0 "" import r1.json r2.json --history=certified
# One process a side cannot tell, and the certificate says so.
expect 3 "at least 2 are needed" carbon certify latest~1 latest "${grid[@]}" \
  --history=certified --out=certificate.json
grep -q '"estimated": true' certificate.json ||
  { echo "FAILED: no estimate is labelled"; exit 1; }
expect 0 "every number follows" carbon verify certificate.json \
  --history=certified
sed -i 's/"saved_fraction": 0/"saved_fraction": 1/' certificate.json
expect 1 "/saved_fraction does not follow" carbon verify certificate.json \
  --history=certified
expect 0 "maturity level" carbon indices --history=certified
expect 0 "certificates: 1 copied, 0 already" history copy certified copied
expect 0 "certificates: 0 copied, 1 already" history merge certified \
  --history=copied

# What cannot be is said before anything is measured.
expect 2 "--backend=best: which backend is best follows from tuned ones" tune \
  --op=add --backend=best
# What cannot run here is not tried.
if ! grep -q amx_bf16 /proc/cpuinfo; then
  expect 2 "unsupported here: this processor has no AMX" tune --op=matmul \
    --shape=m=64,n=64,k=64/bf16 --backend=amx --trials=1
fi
expect 2 "--launch=graph: there is one way to call what runs on cpu" tune \
  --op=add --launch=graph

# A flag that no command takes is out of reach.
for command in $("$optrail" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
  "$optrail" help "$command"
done > helps.txt
for flag in $(cat "$sources"/*.cc | tr '\n' ' ' |
    grep -o 'ABSL_FLAG([^,]*, *[a-z0-9_]*' | sed 's/.*[, ]//'); do
  grep -q -- "^  --$flag\b" helps.txt ||
    { echo "FAILED: no command takes --$flag"; exit 1; }
done

# Help fits a terminal.
"$optrail" help >> helps.txt
if awk 'length > 80' helps.txt | grep .; then
  echo "FAILED: help of more than 80 columns"
  exit 1
fi

# A narrow one, too: only a command to copy goes beyond its edge.
for command in $("$optrail" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
  COLUMNS=60 "$optrail" help "$command"
done > narrow.txt
COLUMNS=60 "$optrail" help >> narrow.txt
if awk 'length > 60 && !/^ +(optrail|--|tune |for |"tune)/' narrow.txt | grep .; then
  echo "FAILED: help of more than 60 columns"
  exit 1
fi

# Help names the exit codes that are not the usual ones.
expect 0 "optrail gate" help compare
for command in bench tune suite compare gate convergence changes bisect \
  history; do
  expect 0 "Exit code" help "$command"
done

# A server that is killed leaves no run and no half of one.
model=$sources/../graph/testdata/tiny_dlrm.onnx
"$optrail" graph serve "$model" --load=100 --batch=1 --duration=10m --record \
  --history=served > served.txt 2>&1 &
server=$!
until (($(ls "/proc/$server/task" | wc -l) > 1)); do
  kill -0 "$server" || { cat served.txt; exit 1; }
done
kill -9 "$server"
wait "$server" 2> /dev/null
if [[ -n $(find served -name '*.pb*' 2> /dev/null) ]]; then
  echo "FAILED: a killed server left $(find served)"
  exit 1
fi
expect 1 "The queue grows: this load cannot be served" graph serve "$model" \
  --load=1e7 --batch=1 --duration=100ms --record --history=served
expect 0 "recorded: run" graph serve "$model" --load=50 --batch=4 \
  --duration=1s --record --history=served
expect 0 "latency_p99" show latest --history=served
echo "all as expected"
