/* Runs one kernel of an export (optrail export) with the CUDA driver alone:
 *   cc exported.c -l:libcuda.so.1 -o exported
 *   ./exported FOLDER NUMBER FILE...
 * NUMBER counts the kernels of FOLDER/manifest.json from 0. There is a FILE for
 * each operand: inputs are read from it, outputs written to it. The manifest is
 * taken as it was written; a program of your own reads it with any library.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is used of cuda.h, which a program of your own includes. */
typedef unsigned long long CUdeviceptr;
int cuInit(unsigned flags);
int cuDeviceGet(int* device, int ordinal);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuCtxSetCurrent(void* context);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(CUdeviceptr* address, size_t bytes);
int cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes);
int cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes);
int cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
                    void* stream);
int cuModuleLoadData(void** module, const void* image);
int cuModuleGetFunction(void** function, void* module, const char* name);
int cuFuncSetAttribute(void* function, int attribute, int value);
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y,
                   unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared_bytes, void* stream,
                   void** parameters, void** extra);
int cuTensorMapEncodeTiled(void* map, int type, uint32_t rank, void* address,
                           const uint64_t* dims, const uint64_t* stride_bytes,
                           const uint32_t* box, const uint32_t* element_strides,
                           int interleave, int swizzle, int l2_promotion,
                           int fill);
int cuTensorMapEncodeIm2col(void* map, int type, uint32_t rank, void* address,
                            const uint64_t* dims, const uint64_t* stride_bytes,
                            const int* lower, const int* upper,
                            uint32_t channels, uint32_t pixels,
                            const uint32_t* element_strides, int interleave,
                            int swizzle, int l2_promotion, int fill);
enum { kMaxDynamicSharedBytes = 8, kNonPortableClusterSize = 14 };
enum { kMost = 64, kMapBytes = 128 };

static void Check(int result, const char* what) {
  if (result == 0) return;
  fprintf(stderr, "%s: CUDA error %d\n", what, result);
  exit(2);
}

static char* ReadFile(const char* path, size_t* bytes) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    exit(2);
  }
  fseek(file, 0, SEEK_END);
  *bytes = (size_t)ftell(file);
  rewind(file);
  char* const contents = calloc(*bytes + 1, 1);
  if (fread(contents, 1, *bytes, file) != *bytes) exit(2);
  fclose(file);
  return contents;
}

/* A value of the manifest. Members of an object have keys. */
typedef struct Json {
  char type; /* '{', '[', '"', or '0' for a number */
  long long number;
  char *text, *key;
  struct Json *first, *next;
} Json;

static char* SkipSpace(char* at) { return at + strspn(at, " \n,:"); }

/* Texts of a manifest have no escapes. */
static char* ParseText(char* at, char** text) {
  char* const end = strchr(at + 1, '"');
  *end = '\0';
  *text = at + 1;
  return end + 1;
}

static char* Parse(char* at, Json* value) {
  at = SkipSpace(at);
  value->type = *at;
  if (*at == '"') return ParseText(at, &value->text);
  if (*at != '{' && *at != '[') {
    value->type = '0';
    value->number = strtoll(at, &at, 10);
    return at;
  }
  Json** last = &value->first;
  const char close = *at == '{' ? '}' : ']';
  for (at = SkipSpace(at + 1); *at != close; at = SkipSpace(at)) {
    *last = calloc(1, sizeof(Json));
    char* key = NULL;
    if (close == '}') at = ParseText(at, &key);
    at = Parse(at, *last);
    (*last)->key = key;
    last = &(*last)->next;
  }
  return at + 1;
}

static const Json* Get(const Json* object, const char* key) {
  for (const Json* one = object->first; one != NULL; one = one->next) {
    if (strcmp(one->key, key) == 0) return one;
  }
  fprintf(stderr, "the manifest has no \"%s\" here\n", key);
  exit(2);
}
static long long Number(const Json* object, const char* key) {
  return Get(object, key)->number;
}
static int Numbers(const Json* object, const char* key, uint64_t* wide,
                   uint32_t* narrow) {
  int count = 0;
  for (const Json* one = Get(object, key)->first; one; one = one->next) {
    wide[count] = (uint64_t)one->number;
    narrow[count++] = (uint32_t)one->number;
  }
  return count;
}

static CUdeviceptr operands[kMost], workspace;

static CUdeviceptr AddressOf(const Json* address) {
  const Json* const of = Get(address, "of");
  return (of->type == '0' ? operands[of->number] : workspace) +
         (CUdeviceptr)Number(address, "plus");
}

static void EncodeMap(const Json* map, void* to) {
  uint64_t dims[5], strides[5], unused[5];
  uint32_t narrow[5], box[5], element_strides[5];
  const int rank = Numbers(map, "dims", dims, narrow);
  Numbers(map, "stride_bytes", strides, narrow);
  Numbers(map, "element_strides", unused, element_strides);
  const int type = (int)Number(map, "data_type");
  void* const address = (void*)(uintptr_t)AddressOf(Get(map, "address"));
  const int interleave = (int)Number(map, "interleave");
  const int swizzle = (int)Number(map, "swizzle");
  const int promotion = (int)Number(map, "l2_promotion");
  const int fill = (int)Number(map, "fill");
  if (strcmp(Get(map, "encode")->text, "cuTensorMapEncodeTiled") == 0) {
    Numbers(map, "box", unused, box);
    Check(cuTensorMapEncodeTiled(to, type, (uint32_t)rank, address, dims,
                                 strides, box, element_strides, interleave,
                                 swizzle, promotion, fill),
          "cuTensorMapEncodeTiled");
    return;
  }
  uint32_t lower[5], upper[5];
  Numbers(map, "lower", unused, lower);
  Numbers(map, "upper", unused, upper);
  Check(cuTensorMapEncodeIm2col(
            to, type, (uint32_t)rank, address, dims, strides, (int*)lower,
            (int*)upper, (uint32_t)Number(map, "channels"),
            (uint32_t)Number(map, "pixels"), element_strides, interleave,
            swizzle, promotion, fill),
        "cuTensorMapEncodeIm2col");
}

/* The bytes of a parameter; a tensor map needs an address of 64. */
static void* ParameterOf(const Json* parameter) {
  const size_t bytes = (size_t)Number(parameter, "bytes");
  unsigned char* const made = aligned_alloc(64, (bytes + 63) / 64 * 64);
  const char* const hex = Get(parameter, "hex")->text;
  for (size_t i = 0; i < bytes; ++i) {
    const char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
    made[i] = (unsigned char)strtoul(digits, NULL, 16);
  }
  for (const Json* one = Get(parameter, "addresses")->first; one;
       one = one->next) {
    const CUdeviceptr address = AddressOf(one);
    memcpy(made + Number(one, "at"), &address, sizeof(address));
  }
  for (const Json* one = Get(parameter, "tensor_maps")->first; one;
       one = one->next) {
    _Alignas(64) unsigned char map[kMapBytes];
    EncodeMap(one, map);
    memcpy(made + Number(one, "at"), map, kMapBytes);
  }
  return made;
}

static void Launch(const char* folder, const Json* launch) {
  char path[4096];
  size_t bytes = 0;
  snprintf(path, sizeof(path), "%s/%s", folder, Get(launch, "cubin")->text);
  void *module = NULL, *function = NULL;
  Check(cuModuleLoadData(&module, ReadFile(path, &bytes)), "cuModuleLoadData");
  Check(cuModuleGetFunction(&function, module, Get(launch, "function")->text),
        "cuModuleGetFunction");
  const int shared = (int)Number(launch, "shared_bytes");
  if (shared > 48 << 10) {
    Check(cuFuncSetAttribute(function, kMaxDynamicSharedBytes, shared),
          "cuFuncSetAttribute");
  }
  if (Number(launch, "cluster") > 8) {
    Check(cuFuncSetAttribute(function, kNonPortableClusterSize, 1),
          "cuFuncSetAttribute");
  }
  uint64_t wide[3];
  uint32_t grid[3], block[3];
  Numbers(launch, "grid", wide, grid);
  Numbers(launch, "block", wide, block);
  void* parameters[kMost];
  int count = 0;
  for (const Json* one = Get(launch, "parameters")->first; one;
       one = one->next) {
    parameters[count++] = ParameterOf(one);
  }
  Check(cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1],
                       block[2], (unsigned)shared, NULL, parameters, NULL),
        "cuLaunchKernel");
}

int main(int argc, char** argv) {
  char path[4096];
  size_t bytes = 0;
  if (argc < 3) {
    fprintf(stderr, "usage: exported FOLDER NUMBER FILE...\n");
    return 2;
  }
  snprintf(path, sizeof(path), "%s/manifest.json", argv[1]);
  Json manifest = {0};
  Parse(ReadFile(path, &bytes), &manifest);
  const Json* kernel = Get(&manifest, "kernels")->first;
  for (int i = atoi(argv[2]); i > 0 && kernel != NULL; --i) {
    kernel = kernel->next;
  }
  if (kernel == NULL) {
    fprintf(stderr, "the manifest has no kernel %s\n", argv[2]);
    return 2;
  }
  void* context = NULL;
  int device = 0;
  Check(cuInit(0), "cuInit");
  Check(cuDeviceGet(&device, 0), "cuDeviceGet");
  Check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  int count = 0;
  for (const Json* one = Get(kernel, "operands")->first; one; one = one->next) {
    const size_t size = (size_t)Number(one, "bytes");
    if (count + 3 >= argc) {
      fprintf(stderr, "no file for operand %s\n", Get(one, "name")->text);
      return 2;
    }
    Check(cuMemAlloc_v2(&operands[count], size), "cuMemAlloc");
    if (strcmp(Get(one, "role")->text, "output") != 0) {
      char* const values = ReadFile(argv[3 + count], &bytes);
      if (bytes != size) {
        fprintf(stderr, "%s has %zu bytes, expected %zu\n", argv[3 + count],
                bytes, size);
        return 2;
      }
      Check(cuMemcpyHtoD_v2(operands[count], values, size), "cuMemcpyHtoD");
    }
    ++count;
  }
  const size_t workspace_bytes = (size_t)Number(kernel, "workspace_bytes");
  if (workspace_bytes > 0) {
    Check(cuMemAlloc_v2(&workspace, workspace_bytes), "cuMemAlloc");
    Check(cuMemsetD8Async(workspace, 0, workspace_bytes, NULL), "cuMemsetD8");
  }
  for (const Json* one = Get(kernel, "launches")->first; one; one = one->next) {
    Launch(argv[1], one);
  }
  Check(cuCtxSynchronize(), "cuCtxSynchronize");
  count = 0;
  for (const Json* one = Get(kernel, "operands")->first; one; one = one->next) {
    const size_t size = (size_t)Number(one, "bytes");
    if (strcmp(Get(one, "role")->text, "input") != 0) {
      char* const values = malloc(size);
      Check(cuMemcpyDtoH_v2(values, operands[count], size), "cuMemcpyDtoH");
      FILE* const file = fopen(argv[3 + count], "wb");
      if (file == NULL || fwrite(values, 1, size, file) != size ||
          fclose(file) != 0) {
        perror(argv[3 + count]);
        return 2;
      }
    }
    ++count;
  }
  return 0;
}
