/* A service that knows nothing of tuning: it opens a store, and runs one
 * request after another. //suites/evaluation:moving_traffic plants it.
 *
 *   service STORE < REQUESTS
 *
 * STORE is a folder of tuned configs. A line of REQUESTS is an operator of one
 * thread and its shape: "softmax rows=64,cols=300/f32".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/optrail.h"

enum { kMostProblems = 256, kMostOperands = 8, kAlignment = 64 };

struct problem {
  char line[256]; /* the request */
  optrail_plan* plan;
  void* operands[kMostOperands];
  size_t operand_count;
};

static struct problem problems[kMostProblems];
static int problem_count;

static void fail(const char* what) {
  fprintf(stderr, "service: %s: %s\n", what, optrail_message());
  exit(1);
}

/* Floats that no operator takes long for: no zeros and no denormals. */
static void* new_operand(size_t bytes) {
  float* values = aligned_alloc(
      kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (values == NULL) fail("out of memory");
  for (size_t i = 0; i < bytes / sizeof(float); ++i) {
    values[i] = (float)(i % 13 + 1) / 13;
  }
  return values;
}

static struct problem* find(const optrail_store* store, const char* line) {
  for (int i = 0; i < problem_count; ++i) {
    if (strcmp(problems[i].line, line) == 0) return &problems[i];
  }
  const char* space = strchr(line, ' ');
  char op[64];
  if (problem_count == kMostProblems || space == NULL ||
      (size_t)(space - line) >= sizeof(op)) {
    fail(line);
  }
  snprintf(op, sizeof(op), "%.*s", (int)(space - line), line);
  struct problem* problem = &problems[problem_count++];
  snprintf(problem->line, sizeof(problem->line), "%s", line);
  optrail_problem asked = OPTRAIL_PROBLEM_INIT;
  asked.op = op;
  asked.shape = space + 1;
  if (optrail_plan_create(store, &asked, NULL, &problem->plan) != OPTRAIL_OK) {
    fail(line);
  }
  problem->operand_count = optrail_plan_operand_count(problem->plan);
  if (problem->operand_count > kMostOperands) fail(line);
  for (size_t i = 0; i < problem->operand_count; ++i) {
    optrail_operand operand = OPTRAIL_OPERAND_INIT;
    if (optrail_shape_operand(op, asked.shape, i, &operand, NULL) !=
        OPTRAIL_OK) {
      fail(line);
    }
    problem->operands[i] = new_operand(operand.bytes);
  }
  return problem;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: service STORE < REQUESTS\n");
    return 2;
  }
  optrail_store* store = NULL;
  if (optrail_store_open(argv[1], &store) != OPTRAIL_OK) fail(argv[1]);
  char line[256];
  long answered = 0;
  while (fgets(line, sizeof(line), stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    const struct problem* problem = find(store, line);
    optrail_call call = OPTRAIL_CALL_INIT;
    call.operands = problem->operands;
    call.operand_count = problem->operand_count;
    if (optrail_run(problem->plan, &call) != OPTRAIL_OK) fail(line);
    ++answered;
  }
  for (int i = 0; i < problem_count; ++i) {
    optrail_plan_destroy(problems[i].plan);
    for (size_t j = 0; j < problems[i].operand_count; ++j) {
      free(problems[i].operands[j]);
    }
  }
  optrail_store_close(store);
  printf("%ld requests\n", answered);
  return 0;
}
