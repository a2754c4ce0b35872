#ifndef OPTRAIL_H_
#define OPTRAIL_H_

/* liboptrail: tuned operators for programs in C, and in every language that
 * calls C.
 *
 *   optrail_store* store = NULL;
 *   optrail_plan* plan = NULL;
 *   optrail_problem problem = OPTRAIL_PROBLEM_INIT;
 *   problem.op = "softmax";
 *   problem.shape = "rows=512,cols=384/f32";
 *   void* operands[] = {x, y};
 *   optrail_call call = OPTRAIL_CALL_INIT;
 *   call.operands = operands;
 *   call.operand_count = 2;
 *   if (optrail_store_open(".optrail/store", &store) != OPTRAIL_OK ||
 *       optrail_plan_create(store, &problem, NULL, &plan) != OPTRAIL_OK ||
 *       optrail_run(plan, &call) != OPTRAIL_OK) {
 *     fprintf(stderr, "%s\n", optrail_message());
 *   }
 *
 * Errors. Every function that can fail returns a status; optrail_message() says
 * what was wrong, what was expected and what to do next. Nothing aborts, throws
 * or prints, but for a library that some operators use: libgomp writes a line
 * if OMP_NUM_THREADS is no number of threads. Where a function fails, its
 * results are not written.
 *
 * Threads. Stores and plans are immutable: any number of threads may use one at
 * the same time. Whoever closes one makes sure that nobody uses it any more.
 *
 * Strings that are returned live as long as what they came from, unless their
 * function says otherwise.
 *
 * Structs grow at their end: set struct_size, as the _INIT macros do, and leave
 * what you do not use 0.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised with every function or field that is added. */
#define OPTRAIL_VERSION 2

typedef enum optrail_status {
  OPTRAIL_OK = 0,
  OPTRAIL_INVALID_ARGUMENT = 1,
  OPTRAIL_NOT_FOUND = 2,   /* a file, an operator, a tuned config */
  OPTRAIL_UNSUPPORTED = 3, /* by this machine or this library: why */
  OPTRAIL_OUT_OF_MEMORY = 4,
  OPTRAIL_FAILED_PRECONDITION = 5, /* right, but not now: a call after fork() */
  OPTRAIL_UNAVAILABLE =
      6, /* files of the library are missing or do not match */
  OPTRAIL_INTERNAL = 7
} optrail_status;

/* OPTRAIL_VERSION of the library that runs. */
int32_t optrail_version(void);

/* What the last failed call of this thread says; valid until its next call. */
const char* optrail_message(void);

/* "INVALID_ARGUMENT"; "UNKNOWN" for a number that is no status. */
const char* optrail_status_name(optrail_status status);

/* This machine, as tuned configs name it ("amd-epyc-zen4-2c"). `device` is
 * "cpu" (or NULL) or "cuda". The id lives as long as the process. */
optrail_status optrail_hardware_id(const char* device, const char** id);

/* The operators of this library, with spaces in between. */
const char* optrail_operators(void);

/* --- What is to be computed -------------------------------------------------
 */

enum {
  /* Only what was tuned for this very shape on this hardware will do; else
   * OPTRAIL_NOT_FOUND says what there is. */
  OPTRAIL_EXACT_ONLY = 1
};

typedef struct optrail_problem {
  size_t struct_size;
  const char* op;         /* "matmul" */
  const char* shape;      /* "m=512,n=512,k=64/f32": optrail_shape_text() */
  const char* device;     /* NULL: "cpu"; "cuda" */
  const char* backend;    /* NULL: Optrail's own kernel; "onednn", ... */
  const char* cache_mode; /* NULL: "hot"; "cold": tuned with cold caches */
  int32_t threads;        /* 0: 1 */
  uint32_t flags;
} optrail_problem;
#define OPTRAIL_PROBLEM_INIT \
  { sizeof(optrail_problem), NULL, NULL, NULL, NULL, NULL, 0, 0 }

/* Writes the text of a shape of the operator `op`: its dimensions in their
 * order, attributes that differ from their defaults ("padding=1,stride=2";
 * NULL: none) and the data types ("f32"). OPTRAIL_INVALID_ARGUMENT also where
 * `text` has fewer than the needed bytes. */
optrail_status optrail_shape_text(const char* op, const int64_t* dims,
                                  size_t dim_count, const char* attributes,
                                  const char* types, char* text, size_t size);

typedef enum optrail_role {
  OPTRAIL_INPUT = 0,
  OPTRAIL_OUTPUT = 1,
  OPTRAIL_IN_OUT = 2
} optrail_role;

/* One operand: dense and row-major. */
typedef struct optrail_operand {
  size_t struct_size;
  const char* name;
  const char* type; /* "f32", "f16", "bf16", "i32", ... */
  optrail_role role;
  int32_t rank;
  const int64_t* dims;
  size_t bytes;
} optrail_operand;
#define OPTRAIL_OPERAND_INIT \
  { sizeof(optrail_operand), NULL, NULL, OPTRAIL_INPUT, 0, NULL, 0 }

/* Writes the text of the shape whose inputs and in-out operands, in their
 * order, have the types, ranks and dims of `inputs`: "m=3,n=4,k=5/f32" for
 * matmul of 3x5 and 5x4. Their names, roles and bytes are not read. */
optrail_status optrail_infer_shape(const char* op,
                                   const optrail_operand* inputs,
                                   size_t input_count, const char* attributes,
                                   char* text, size_t size);

/* Operand `index` of calls of this shape; it lives as long as the process.
 * `count` (or NULL) is set to the number of operands, also where the index is
 * too large. */
optrail_status optrail_shape_operand(const char* op, const char* shape,
                                     size_t index, optrail_operand* operand,
                                     size_t* count);

/* --- Tuned configs ----------------------------------------------------------
 */

typedef struct optrail_store optrail_store;

/* Reads tuned configs: those that the library was built with and, unless `path`
 * is NULL, a file of them or a folder such as .optrail/store, whose configs are
 * preferred. OPTRAIL_NOT_FOUND for a path that is not there,
 * OPTRAIL_INVALID_ARGUMENT, with file, line and column, for a broken file and
 * for one in an operator's folder that is about something else than its path
 * says; OPTRAIL_FAILED_PRECONDITION for one that may not be read, and for pipes
 * and devices. */
optrail_status optrail_store_open(const char* path, optrail_store** store);

/* NULL: nothing to do. */
void optrail_store_close(optrail_store* store);

/* 16 hexadecimal digits over all that the store holds: stores of equal digests
 * answer alike. "" for NULL. */
const char* optrail_store_digest(const optrail_store* store);

typedef enum optrail_source {
  OPTRAIL_TUNED_EXACTLY = 0,         /* for this shape on this hardware */
  OPTRAIL_TUNED_FOR_OTHER_SHAPE = 1, /* nearby, on this hardware */
  OPTRAIL_TUNED_ON_OTHER_HARDWARE = 2,
  OPTRAIL_DEFAULT_CONFIG = 3,  /* nothing fits */
  OPTRAIL_CALLERS_CONFIG = 4,  /* optrail_plan_options.config */
  OPTRAIL_TUNED_FOR_BUCKET = 5 /* verified for a range with this shape */
} optrail_source;

typedef struct optrail_choice {
  size_t struct_size;
  optrail_source source;
  /* Not 0: the kernel has changed since the config was tuned for it. */
  int32_t unverified;
  /* "algorithm=online,cols_tile=64"; "" where nothing is tuned for an operator
   * that the library does not have. */
  const char* config;
  const char* hardware_id; /* on which it was tuned; "" for a default */
  const char* warning;     /* what was substituted and why; "" if nothing was */
  double shape_distance; /* sum of |log2| of the dimensions' ratios; 0: equal */
} optrail_choice;
#define OPTRAIL_CHOICE_INIT \
  { sizeof(optrail_choice), OPTRAIL_TUNED_EXACTLY, 0, NULL, NULL, NULL, 0 }

/* Which config to run with. The first question about a problem takes up to a
 * millisecond, the same one again tens of nanoseconds; no lock is taken. The
 * choice's strings live as long as the store. Operators that the library does
 * not have may be asked for, too, as far as the store knows them: nobody then
 * checks that their config is valid here. */
optrail_status optrail_lookup(const optrail_store* store,
                              const optrail_problem* problem,
                              optrail_choice* choice);

/* --- Observed calls ---------------------------------------------------------
 */

enum {
  /* How long calls of plans on CPUs take, too: it costs two readings of the
   * clock a call. */
  OPTRAIL_OBSERVE_TIME = 1
};

/* Counts from now on every lookup and every call of a plan of this process, by
 * operator, shape and how the lookup ended, in a new file in `folder`, for
 * `optrail observe`. The file is mapped: nothing is lost where the process is
 * killed, and children of fork() count into the same one. The environment may
 * ask for it as well, before the first store or plan: OPTRAIL_OBSERVE=FOLDER,
 * OPTRAIL_OBSERVE_TIME=1. What it asks for and cannot be had, such as a folder
 * that may not be written, keeps no store and no plan from working: then
 * nothing is counted. OPTRAIL_FAILED_PRECONDITION where it counts already.
 *
 * With NULL for `folder` nothing begins: OPTRAIL_OK if calls are counted, else
 * OPTRAIL_FAILED_PRECONDITION, and the message says why they are not. */
optrail_status optrail_observe(const char* folder, uint32_t flags);

/* --- Plans ------------------------------------------------------------------
 */

typedef struct optrail_plan optrail_plan;

/* Where a plan on CPUs takes memory from for calls that bring none; on "cuda"
 * they take it from the driver in the order of their stream. `allocate` returns
 * `bytes` at a multiple of `alignment` (a power of two), or NULL. Both are
 * called by every thread that runs the plan. */
typedef struct optrail_allocator {
  void* context;
  void* (*allocate)(void* context, size_t bytes, size_t alignment);
  void (*release)(void* context, void* memory, size_t bytes);
} optrail_allocator;

enum {
  /* Kernels that are compiled when they are asked for may be compiled; without
   * it they must lie in compile_cache. */
  OPTRAIL_MAY_COMPILE = 1
};

typedef struct optrail_plan_options {
  size_t struct_size;
  const char* config;                 /* NULL: what optrail_lookup() chooses */
  const optrail_allocator* allocator; /* NULL: the C library's; copied */
  const char* compile_cache; /* a folder, as `optrail compile` fills; or NULL */
  uint32_t flags;
} optrail_plan_options;
#define OPTRAIL_PLAN_OPTIONS_INIT \
  { sizeof(optrail_plan_options), NULL, NULL, NULL, 0 }

/* `store` may be NULL: the default config. It may be closed while the plan
 * lives. `options` may be NULL.
 *
 * On "cuda" a plan belongs to the CUDA context that is current on the calling
 * thread, and to its GPU: code is loaded into it here and unloaded by
 * optrail_plan_destroy(), which comes after the work of all calls is done.
 * OPTRAIL_FAILED_PRECONDITION without a context. Not while the thread captures
 * a graph. */
optrail_status optrail_plan_create(const optrail_store* store,
                                   const optrail_problem* problem,
                                   const optrail_plan_options* options,
                                   optrail_plan** plan);

/* NULL: nothing to do. */
void optrail_plan_destroy(optrail_plan* plan);

/* What the plan runs with. */
optrail_status optrail_plan_choice(const optrail_plan* plan,
                                   optrail_choice* choice);

/* 0 for NULL. */
size_t optrail_plan_operand_count(const optrail_plan* plan);
optrail_status optrail_plan_operand(const optrail_plan* plan, size_t index,
                                    optrail_operand* operand);

/* Memory that a call needs beside its operands, aligned to 64 bytes, on "cuda"
 * to 256; 0: none. Calls at the same time, or on different streams, need a
 * workspace each; packed weights are only read and may be shared. */
size_t optrail_plan_workspace_bytes(const optrail_plan* plan);
size_t optrail_plan_packed_bytes(const optrail_plan* plan);

/* --- Threads ----------------------------------------------------------------
 */

typedef struct optrail_threads optrail_threads;

/* Threads of the library's own: `count` with the one that calls. Threads do not
 * survive fork(): a child's calls with them fail. */
optrail_status optrail_threads_create(int32_t count, optrail_threads** threads);

/* The caller's threads. `parallel_for` calls body(argument, i) once for each i
 * in [0, count), on at most `threads` threads at a time, and returns when all
 * calls have returned. It must return only then: bodies use memory of the call
 * that runs. A call whose loop was not run whole fails with
 * OPTRAIL_FAILED_PRECONDITION. */
typedef void (*optrail_parallel_for)(void* context, int64_t count,
                                     void (*body)(void* argument, int64_t i),
                                     void* argument);
optrail_status optrail_threads_adopt(optrail_parallel_for parallel_for,
                                     void* context, int32_t count,
                                     optrail_threads** threads);

/* NULL: nothing to do. */
void optrail_threads_destroy(optrail_threads* threads);

/* --- Calls ------------------------------------------------------------------
 */

enum {
  /* The caller's workspace holds zeros, or what a successful call of the same
   * plan left there: a kernel that needs zeros gets none written. */
  OPTRAIL_WORKSPACE_IS_CLEAN = 1
};

typedef struct optrail_call {
  size_t struct_size;
  void* const* operands; /* in the order of optrail_plan_operand() */
  size_t operand_count;
  const size_t* operand_bytes; /* checked against the plan; NULL: unknown */
  void* workspace;             /* NULL: the plan's allocator is asked */
  size_t workspace_bytes;
  const void* packed; /* by optrail_pack(); NULL: packed anew in every call */
  size_t packed_bytes;
  const optrail_threads* threads; /* NULL: the calling thread alone */
  void*
      stream; /* on "cuda" a CUstream or cudaStream_t; NULL: the default one */
  uint32_t flags;
} optrail_call;
#define OPTRAIL_CALL_INIT \
  { sizeof(optrail_call), NULL, 0, NULL, NULL, 0, NULL, 0, NULL, NULL, 0 }

/* Writes weights in the kernel's own layout, once for many calls: `packed` has
 * optrail_plan_packed_bytes(). Again once the weights have changed.
 * call->packed is not read. */
optrail_status optrail_pack(const optrail_plan* plan, const optrail_call* call,
                            void* packed);

/* Makes one call and returns when it is done. OPTRAIL_INVALID_ARGUMENT for a
 * null or misaligned pointer, a wrong size, and where an output overlaps
 * another operand, the workspace an operand or the packed weights, or these an
 * output; then nothing was written.
 *
 * On "cuda" operands are device addresses. The call is launched on call->stream
 * and returns at once; it waits for nothing, and a stream that is being
 * captured takes it into its graph. The plan's context must be current on the
 * calling thread. What goes wrong on the GPU is reported by the stream. */
optrail_status optrail_run(const optrail_plan* plan, const optrail_call* call);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OPTRAIL_H_ */
