/* liboptrail.so: hands every function on to the implementation beside it,
 * optrail/liboptrail_impl.so, which is opened by the first call.
 *
 * The implementation uses C++, Protobuf and Abseil. Opened with RTLD_LOCAL and
 * RTLD_DEEPBIND it keeps them to itself: a program that uses others of the same
 * names never meets them. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/optrail.h"

/* F(result, name, parameters, arguments): all that hand on. What they return
 * without an implementation: a status, or R(value) for the others. */
#define OPTRAIL_FUNCTIONS(F, R)                                                \
  R(const char*, optrail_message, (void), (), problem)                         \
  R(const char*, optrail_status_name, (optrail_status status), (status),       \
    OwnStatusName(status))                                                     \
  F(optrail_hardware_id, (const char* device, const char** id), (device, id))  \
  R(const char*, optrail_operators, (void), (), "")                            \
  F(optrail_shape_text,                                                        \
    (const char* op, const int64_t* dims, size_t dim_count,                    \
     const char* attributes, const char* types, char* text, size_t size),      \
    (op, dims, dim_count, attributes, types, text, size))                      \
  F(optrail_infer_shape,                                                       \
    (const char* op, const optrail_operand* inputs, size_t input_count,        \
     const char* attributes, char* text, size_t size),                         \
    (op, inputs, input_count, attributes, text, size))                         \
  F(optrail_shape_operand,                                                     \
    (const char* op, const char* shape, size_t index,                          \
     optrail_operand* operand, size_t* count),                                 \
    (op, shape, index, operand, count))                                        \
  F(optrail_store_open, (const char* path, optrail_store** store),             \
    (path, store))                                                             \
  F(optrail_observe, (const char* folder, uint32_t flags), (folder, flags))    \
  R(const char*, optrail_store_digest, (const optrail_store* store), (store),  \
    "")                                                                        \
  F(optrail_lookup,                                                            \
    (const optrail_store* store, const optrail_problem* wanted,                \
     optrail_choice* choice),                                                  \
    (store, wanted, choice))                                                   \
  F(optrail_plan_create,                                                       \
    (const optrail_store* store, const optrail_problem* wanted,                \
     const optrail_plan_options* options, optrail_plan** plan),                \
    (store, wanted, options, plan))                                            \
  F(optrail_plan_choice, (const optrail_plan* plan, optrail_choice* choice),   \
    (plan, choice))                                                            \
  R(size_t, optrail_plan_operand_count, (const optrail_plan* plan), (plan), 0) \
  F(optrail_plan_operand,                                                      \
    (const optrail_plan* plan, size_t index, optrail_operand* operand),        \
    (plan, index, operand))                                                    \
  R(size_t, optrail_plan_workspace_bytes, (const optrail_plan* plan), (plan),  \
    0)                                                                         \
  R(size_t, optrail_plan_packed_bytes, (const optrail_plan* plan), (plan), 0)  \
  F(optrail_threads_create, (int32_t count, optrail_threads * *threads),       \
    (count, threads))                                                          \
  F(optrail_threads_adopt,                                                     \
    (optrail_parallel_for parallel_for, void* context, int32_t count,          \
     optrail_threads** threads),                                               \
    (parallel_for, context, count, threads))                                   \
  F(optrail_pack,                                                              \
    (const optrail_plan* plan, const optrail_call* call, void* packed),        \
    (plan, call, packed))                                                      \
  F(optrail_run, (const optrail_plan* plan, const optrail_call* call),         \
    (plan, call))

/* Those that return nothing. */
#define OPTRAIL_PROCEDURES(P)                              \
  P(optrail_store_close, (optrail_store * store), (store)) \
  P(optrail_plan_destroy, (optrail_plan * plan), (plan))   \
  P(optrail_threads_destroy, (optrail_threads * threads), (threads))

static struct {
#define F(name, parameters, arguments) optrail_status(*name) parameters;
#define R(type, name, parameters, arguments, without) type(*name) parameters;
#define P(name, parameters, arguments) void(*name) parameters;
  OPTRAIL_FUNCTIONS(F, R)
  OPTRAIL_PROCEDURES(P)
#undef F
#undef R
#undef P
} implementation;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int is_open;
static char problem[8192]; /* why not */

static const char* OwnStatusName(optrail_status status) {
  return status == OPTRAIL_UNAVAILABLE ? "UNAVAILABLE" : "UNKNOWN";
}

/* Where this file lies; "" where nobody knows. */
static void FolderOfThis(char* folder, size_t size) {
  Dl_info info;
  folder[0] = '\0';
  if (dladdr(&implementation, &info) == 0 || info.dli_fname == NULL) return;
  char* const path = realpath(info.dli_fname, NULL);
  if (path == NULL) return;
  char* const slash = strrchr(path, '/');
  if (slash != NULL) *slash = '\0';
  if (strlen(path) < size) strcpy(folder, path);
  free(path);
}

static int Find(void* library, const char* name, void* function) {
  void* const found = dlsym(library, name);
  memcpy(function, &found, sizeof(found));
  if (found == NULL) {
    snprintf(problem, sizeof(problem),
             "the implementation of liboptrail has no %s: it is older than "
             "liboptrail.so; next: install both from one archive",
             name);
  }
  return found != NULL;
}

/* Where the file ends before what its headers name, as after a copy that broke
 * off: the loader maps first, and the process would die of SIGBUS. 0: whole, or
 * something for the loader to judge. */
static int IsCutOff(const char* path) {
  int cut = 0;
  struct stat info;
  Elf64_Ehdr elf;
  FILE* const file = stat(path, &info) == 0 && S_ISREG(info.st_mode)
                         ? fopen(path, "rbe")
                         : NULL;
  if (file == NULL) return 0;
  if (fread(&elf, sizeof(elf), 1, file) == 1 &&
      memcmp(elf.e_ident, ELFMAG, SELFMAG) == 0 &&
      elf.e_ident[EI_CLASS] == ELFCLASS64 &&
      elf.e_phentsize == sizeof(Elf64_Phdr)) {
    const uint64_t size = (uint64_t)info.st_size;
    cut = elf.e_shoff + (uint64_t)elf.e_shnum * elf.e_shentsize > size ||
          fseek(file, (long)elf.e_phoff, SEEK_SET) != 0;
    for (int i = 0; i < elf.e_phnum && !cut; ++i) {
      Elf64_Phdr segment;
      cut = fread(&segment, sizeof(segment), 1, file) != 1 ||
            (segment.p_type == PT_LOAD &&
             segment.p_offset + segment.p_filesz > size);
    }
  }
  fclose(file);
  return cut;
}

static void Open(void) {
  char folder[3072], path[4096];
  FolderOfThis(folder, sizeof(folder));
  snprintf(path, sizeof(path), "%s/optrail/liboptrail_impl.so", folder);
  if (IsCutOff(path)) {
    snprintf(problem, sizeof(problem),
             "the implementation of liboptrail is cut off: %s is shorter than "
             "its headers say; next: install the whole lib folder of its "
             "archive",
             path);
    return;
  }
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (library == NULL) {
    snprintf(problem, sizeof(problem),
             "the implementation of liboptrail cannot be loaded: %s; next: "
             "install the whole lib folder of its archive",
             dlerror());
    return;
  }
  int32_t (*version)(void);
  if (!Find(library, "optrail_version", &version)) return;
  if (version() != OPTRAIL_VERSION) {
    snprintf(problem, sizeof(problem),
             "%s is of version %d and liboptrail.so of %d; next: install both "
             "from one archive",
             path, (int)version(), OPTRAIL_VERSION);
    return;
  }
#define F(name, parameters, arguments) \
  if (!Find(library, #name, &implementation.name)) return;
#define R(type, name, parameters, arguments, without) \
  F(name, parameters, arguments)
#define P(name, parameters, arguments) F(name, parameters, arguments)
  OPTRAIL_FUNCTIONS(F, R)
  OPTRAIL_PROCEDURES(P)
#undef F
#undef R
#undef P
  is_open = 1;
}

static int IsOpen(void) {
  /* Whoever passed the call below sees what the first one wrote. */
  pthread_once(&once, Open);
  return is_open;
}

int32_t optrail_version(void) { return OPTRAIL_VERSION; }

#define F(name, parameters, arguments)         \
  optrail_status name parameters {             \
    if (!IsOpen()) return OPTRAIL_UNAVAILABLE; \
    return implementation.name arguments;      \
  }
#define R(type, name, parameters, arguments, without) \
  type name parameters {                              \
    if (!IsOpen()) return without;                    \
    return implementation.name arguments;             \
  }
#define P(name, parameters, arguments)           \
  void name parameters {                         \
    if (IsOpen()) implementation.name arguments; \
  }
OPTRAIL_FUNCTIONS(F, R)
OPTRAIL_PROCEDURES(P)
