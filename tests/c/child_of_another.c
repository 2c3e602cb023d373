/* A child that has another C library than its parent, or none that is loaded: says what it was given. */
#include <stdio.h>

enum { STATUS = 5 };

int main(int count, char **words)
{
    (void)printf("child %s\n", count > 1 ? words[1] : "");
    (void)fprintf(stderr, "complaint\n");
    return STATUS;
}
