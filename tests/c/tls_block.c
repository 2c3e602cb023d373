/* A library that takes part of the memory that the loader has for the thread-local variables of what is there at the
 * start of a program, as old OpenMP and BLAS libraries do.  Each copy of its file is a library of its own. */
enum { BYTES = 128 };

static __thread char t_block[BYTES] __attribute__((tls_model("initial-exec"), used));

__attribute__((visibility("default"))) int tls_block_use(int at)
{
    return t_block[at % BYTES]++;
}
