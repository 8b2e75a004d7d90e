/* The header is C: this file compiles it as nothing newer than C99 with every
 * warning an error, and uses it as a caller would. */
#include "clients/c/planewise.h"

#include <stdio.h>

int main(void) {
  planewise_client_options options = {sizeof options, "unix:///nowhere/planewise.sock", NULL, NULL,
                                      1};
  planewise_client* client = NULL;
  planewise_error* error = planewise_client_connect(&options, &client);
  if (error == NULL || client != NULL) {
    fprintf(stderr, "connected to where nobody listens\n");
    return 1;
  }
  printf("%s: %s\n", planewise_error_reason(error), planewise_error_message(error));
  planewise_error_free(error);
  planewise_client_free(NULL);
  return 0;
}
