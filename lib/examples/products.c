/* A product, a softmax and a convolution by liboptrail, beside plain loops.
 *   cc products.c $(pkg-config --cflags --libs optrail) -lm -o products
 */
#include <math.h>
#include <optrail.h>
#include <stdio.h>
#include <stdlib.h>

enum { kM = 96, kN = 80, kK = 64, kC = 8 };
static float a[kM * kK], b[kK * kN], c[kM * kN], y[kM * kN], z[kM * kK];

static void Run(const char* op, const char* shape, void** operands, size_t n) {
  optrail_problem problem = OPTRAIL_PROBLEM_INIT;
  problem.op = op;
  problem.shape = shape;
  optrail_call call = OPTRAIL_CALL_INIT;
  call.operands = operands;
  call.operand_count = n;
  optrail_store* store = NULL; /* what the library was built with */
  optrail_plan* plan = NULL;
  if (optrail_store_open(NULL, &store) != OPTRAIL_OK ||
      optrail_plan_create(store, &problem, NULL, &plan) != OPTRAIL_OK ||
      optrail_run(plan, &call) != OPTRAIL_OK) {
    fprintf(stderr, "%s: %s\n", op, optrail_message());
    exit(2);
  }
  optrail_plan_destroy(plan);
  optrail_store_close(store);
}

int main(void) {
  for (int i = 0; i < kM * kK; ++i) a[i] = (float)(i % 13 - 6) / 6;
  for (int i = 0; i < kK * kN; ++i) b[i] = (float)(i % 17 - 8) / 8;
  Run("matmul", "m=96,n=80,k=64/f32", (void*[]){a, b, c}, 3);
  Run("softmax", "rows=96,cols=80/f32", (void*[]){c, y}, 2);
  /* 96 x 8 pixels of 8 channels, by 8 filters of one pixel. */
  Run("conv2d", "n=1,h=96,w=8,c=8,k=8,r=1,s=1/f32", (void*[]){a, b, z}, 3);
  double product = 0, probability = 0, pixel = 0;
  for (int i = 0; i < kM * kN; ++i) {
    const int row = i / kN, column = i % kN;
    double dot = -c[i], sum = 0;
    for (int k = 0; k < kK; ++k) dot += a[row * kK + k] * b[k * kN + column];
    for (int k = 0; k < kN; ++k) sum += exp(c[row * kN + k]);
    product = fmax(product, fabs(dot));
    probability = fmax(probability, fabs(y[i] - exp(c[i]) / sum));
  }
  for (int i = 0; i < kM * kC * kC; ++i) {
    double dot = -z[i];
    for (int k = 0; k < kC; ++k) dot += a[i / kC * kC + k] * b[k * kC + i % kC];
    pixel = fmax(pixel, fabs(dot));
  }
  printf("largest errors: matmul %.1e, softmax %.1e, conv2d %.1e\n", product,
         probability, pixel);
  return product < 1e-4 && probability < 1e-5 && pixel < 1e-5 ? 0 : 1;
}
