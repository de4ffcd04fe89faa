// Drives llama2.c's run.c, named by -DRUN_C='"path"': loads a version 0 checkpoint from memory and makes tokens greedily.
// Natively a program: run_c CHECKPOINT STEPS prints tokens/s, after a warm-up; in WASM two exported functions.
#define TESTING // leaves out run.c's main
#include RUN_C

static Transformer model;

static void load(float *file) {
  model.config = *(Config *)file;
  int shared = model.config.vocab_size > 0;
  model.config.vocab_size = abs(model.config.vocab_size);
  memory_map_weights(&model.weights, &model.config, file + sizeof(Config) / sizeof(float), shared);
  malloc_run_state(&model.state, &model.config);
}

static int generate_greedily(int steps) {
  int token = 1;
  for (int position = 0; position < steps; position++) {
    float *logits = forward(&model, token, position);
    token = 0;
    for (int i = 1; i < model.config.vocab_size; i++)
      if (logits[i] > logits[token]) token = i;
  }
  return token;
}

#if defined __wasm__
__attribute__((export_name("bench_load"))) void *bench_load(int bytes, int ready) {
  static float *file;
  if (!ready) return file = malloc(bytes);
  load(file);
  return file;
}

__attribute__((export_name("bench_generate"))) int bench_generate(int steps) { return generate_greedily(steps); }
#else
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  FILE *f = fopen(argv[1], "rb");
  if (!f) return 1;
  fseek(f, 0, SEEK_END);
  size_t bytes = ftell(f);
  rewind(f);
  float *file = malloc(bytes);
  if (!file || fread(file, 1, bytes, f) != bytes) return 1;
  fclose(f);
  load(file);
  int steps = atoi(argv[2]), sink = generate_greedily(8);
  double start = now();
  sink += generate_greedily(steps);
  printf("%f\n", steps / (now() - start));
  return sink < 0;
}
#endif
