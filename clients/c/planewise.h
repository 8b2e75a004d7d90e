#ifndef PLANEWISE_CLIENTS_C_PLANEWISE_H_
#define PLANEWISE_CLIENTS_C_PLANEWISE_H_
/* The client library's C interface: what other languages load
 * (libplanewise.so, which exports these functions and nothing else).
 *
 * Forward, backward and steps take and give plain structs and memory of the
 * caller. Control calls take and give JSON: the messages of planewise.v1 with
 * their field names as in the .proto files; enumerators by name; 64-bit integers
 * as strings, bytes in base64, as proto3's JSON has it; defaults are printed.
 *
 * Errors. A function that can fail returns NULL for success or a
 * planewise_error*, which the caller frees. Outputs are set on success only.
 *
 * Ownership. What a function gives through a `T**` is the caller's to free
 * with the function of its type. Every *_free takes NULL. Strings are UTF-8 and
 * end with a NUL; a `const char*` that is returned lives as long as the object
 * it was asked of.
 *
 * Threads. Every object may be used from several threads at once, but not be freed
 * while another call uses it. A client and its sessions are freed in any order, an
 * operation before its session. Do not fork() and go on in the child: gRPC's threads
 * do not come along.
 *
 * Structs. `struct_size` is sizeof the struct as the caller knows it, set by the
 * caller before each call, in results too: it lets the library grow fields.
 * Set every other field that you do not mean to set to 0.
 *
 * Not here: what calls, modes and errors mean (proto/README.md).
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLANEWISE_EXPORT __attribute__((visibility("default")))

/* The API that this library speaks, for example "1.0". */
PLANEWISE_EXPORT const char* planewise_api_version(void);

/* Frees a string given through a char**. */
PLANEWISE_EXPORT void planewise_string_free(char* string);

/* ------------------------------------------------------------------ errors */

typedef struct planewise_error planewise_error;

/* A google.rpc.Code by number and name, for example 9 and "FAILED_PRECONDITION". */
PLANEWISE_EXPORT int32_t planewise_error_code(const planewise_error* error);
PLANEWISE_EXPORT const char* planewise_error_code_name(const planewise_error* error);

/* A reason of the table in proto/README.md, for example "COLUMNWISE_MISSING". */
PLANEWISE_EXPORT const char* planewise_error_reason(const planewise_error* error);

/* What failed, observed against required, on which object, and what to do. */
PLANEWISE_EXPORT const char* planewise_error_message(const planewise_error* error);

/* That table's column: "never", "same_request" or "restart_step". The library has
 * retried already where a retry is its own to make. */
PLANEWISE_EXPORT const char* planewise_error_retry(const planewise_error* error);

/* {"metadata": {"bytesShort": "512"},
 *  "violations": [{"reason": "...", "subject": "...", "description": "..."}],
 *  "retry_delay_ms": 100}
 * Values of metadata are strings; retry_delay_ms is there only if the daemon named
 * a delay. */
PLANEWISE_EXPORT const char* planewise_error_details(const planewise_error* error);

PLANEWISE_EXPORT void planewise_error_free(planewise_error* error);

/* ------------------------------------------------------------------ client */

typedef struct planewise_client planewise_client;

typedef struct {
  size_t struct_size;
  /* unix:///PATH or HOST:PORT. NULL: the environment variable PLANEWISE_TARGET, else
   * planewise_default_target(). */
  const char* target;
  /* For TCP. NULL: the environment variable PLANEWISE_TOKEN, else none. */
  const char* token;
  /* Shown by the daemon's tools. NULL: "planewise". */
  const char* client_name;
  /* How long to try to reach the daemon before a call fails, now and later. 0: 30 seconds. */
  int64_t connect_timeout_ms;
} planewise_client_options;

/* Where a daemon listens that was not told otherwise. */
PLANEWISE_EXPORT const char* planewise_default_target(void);

/* Connects and compares versions. `options` may be NULL. FAILED_PRECONDITION /
 * CLIENT_TOO_OLD if the daemon has another major API version, UNAVAILABLE if it
 * cannot be reached, UNAUTHENTICATED. */
PLANEWISE_EXPORT planewise_error* planewise_client_connect(const planewise_client_options* options,
                                                           planewise_client** client);

/* Where the client is connected to. */
PLANEWISE_EXPORT const char* planewise_client_target(const planewise_client* client);

/* What the user should know about the daemon's version, for a daemon older
 * than this library within the major version; "" for none. */
PLANEWISE_EXPORT const char* planewise_client_warning(const planewise_client* client);

PLANEWISE_EXPORT void planewise_client_free(planewise_client* client);

/* Called on the calling thread for each message of progress, a planewise.v1.Progress
 * in JSON. A result other than 0 gives the call up. */
typedef int32_t (*planewise_progress_callback)(void* user_data, const char* progress);

/* One control call: `method` is GetCapabilities, GetServerConfig, CreateModel, GetModel,
 * ListModels, DeleteModel, ValidateModeSwitch, SwitchMode, SaveModel or
 * VerifyModel; `request` is its request message, NULL for an empty one; `response`
 * is its response message, of the calls that stream the Model, SaveResult or
 * VerifyResult that ends the stream. `progress` is for these and may be NULL.
 *
 * Retries while the daemon cannot be reached. A call that changes something and has
 * no request_id gets one, so that a retry cannot do it twice.
 *
 * timeout_ms: for all of it; 0: none. DEADLINE_EXCEEDED when it passes, CANCELLED
 * if `progress` gave the call up, INVALID_ARGUMENT / INVALID_REQUEST for an unknown
 * method or a request that is not the message's JSON, else what the daemon
 * says. */
PLANEWISE_EXPORT planewise_error* planewise_client_call(planewise_client* client,
                                                        const char* method, const char* request,
                                                        int64_t timeout_ms,
                                                        planewise_progress_callback progress,
                                                        void* user_data, char** response);

/* One tensor of ReadWeights: planewise.v1.ReadTensorHeader. */
typedef struct {
  const char* weight;
  uint64_t version;
  int32_t plane;     /* planewise.v1.Plane that was read, also to dequantize it */
  int32_t part;      /* planewise.v1.PlanePart; dequantized values are a payload */
  int32_t data_type; /* planewise.v1.DataType */
  const int64_t* shape;
  size_t rank;
  int64_t size_bytes;
} planewise_tensor_header;

/* Gives the memory, of header->size_bytes bytes, that one tensor is written into;
 * NULL gives the call up (unless size_bytes is 0). Called on the calling thread; the header
 * lives as long as the callback runs. */
typedef void* (*planewise_place_callback)(void* user_data, const planewise_tensor_header* header);

/* Reads weights of one version into the caller's memory; `request` is a
 * planewise.v1.ReadWeightsRequest in JSON. Tensors come one after another, each
 * checked against its checksum: DATA_LOSS / CHECKSUM_MISMATCH if one is damaged.
 * After a failure the memory's contents are unspecified. */
PLANEWISE_EXPORT planewise_error* planewise_client_read_weights(planewise_client* client,
                                                                const char* request,
                                                                planewise_place_callback place,
                                                                void* user_data);

/* ----------------------------------------------------------------- session */

typedef struct planewise_session planewise_session;
typedef struct planewise_operation planewise_operation;

typedef struct {
  size_t struct_size;
  /* Not 0: sums may be made in any order, and rows need not keep their bits. */
  int32_t allow_nondeterministic;
} planewise_session_options;

/* Opens a session. A thread of the library keeps it alive and takes it up again after
 * a broken connection; operations then go on as if nothing had happened. It ends
 * for good when the daemon has not heard of it for its session time-out, or was
 * restarted: every call then fails with ABORTED / SESSION_EXPIRED. `options` may
 * be NULL. */
PLANEWISE_EXPORT planewise_error* planewise_session_open(planewise_client* client,
                                                         const planewise_session_options* options,
                                                         planewise_session** session);

/* Ends it now: operations that are not done fail with CANCELLED / CANCELLED, saved operands
 * are released. Later calls fail the same way. Never blocks. */
PLANEWISE_EXPORT void planewise_session_close(planewise_session* session);

/* Closes it if need be. Waits until nothing uses the callers' memory. */
PLANEWISE_EXPORT void planewise_session_free(planewise_session* session);

/* A dense row-major tensor in memory of the caller. */
typedef struct {
  void* data; /* of inputs, only read */
  int64_t size_bytes;
  int32_t data_type; /* planewise.v1.DataType */
  const int64_t* shape;
  size_t rank;
} planewise_tensor;

/* Memory that a result is written into. size_bytes must be what the result has. */
typedef struct {
  void* data;
  int64_t size_bytes;
} planewise_buffer;

typedef struct {
  size_t struct_size;
  const char* model;
  const char* layer;
  /* The caller's number of the step; its first forward pins the newest version. */
  uint64_t step;
  planewise_tensor input;  /* [..., in] */
  planewise_buffer output; /* [..., out], type of input */
  int32_t save_for_backward;
  int32_t weight_gradient;   /* dW will be asked of the backward */
  int32_t backward_override; /* planewise.v1.BackwardOverride; 0: the model's */
  int32_t save_original_input;
  int32_t non_finite_policy; /* planewise.v1.NonFinitePolicy; 0: FORMAT */
} planewise_forward_request;

typedef struct {
  size_t struct_size;
  uint64_t handle; /* of what was saved; 0: nothing was */
  uint64_t version;
  int64_t saved_bytes;
  int32_t save_original_input; /* as it was done, and why if not as asked */
  char gemm_path[32];          /* cut to fit, as every array of char here */
  char save_original_input_why[256];
} planewise_forward_result;

/* With a handle, or with X again: then `handle` is 0 and model to input are set. */
typedef struct {
  size_t struct_size;
  uint64_t handle;
  const char* model;
  const char* layer;
  uint64_t version;
  uint64_t step;
  int32_t backward_override; /* as the forward had it; must be named */
  planewise_tensor input;    /* [..., in] */

  planewise_tensor output_gradient; /* [..., out] */
  /* Those whose flag is not 0 are computed, and written here. */
  int32_t want_input_gradient;
  int32_t want_weight_gradient;
  int32_t want_bias_gradient;
  planewise_buffer input_gradient;  /* [..., in], type of output_gradient */
  planewise_buffer weight_gradient; /* [out, in], F32 */
  planewise_buffer bias_gradient;   /* [out], F32 */
  int32_t non_finite_policy;
} planewise_backward_request;

typedef struct {
  size_t struct_size;
  uint64_t version;
  int32_t backward_override;
  char dgrad_path[32];
  char wgrad_path[32];
} planewise_backward_result;

/* These begin an operation and return at once; operations of a session are executed in
 * the order begun. The request struct and its strings and shapes may go when the
 * function returns; the tensors' memory must stay, and inputs unchanged, until the
 * operation is done: it is sent from there, again too. INVALID_ARGUMENT for a
 * request that is wrong whatever the daemon holds; otherwise an error is
 * the operation's. */
PLANEWISE_EXPORT planewise_error* planewise_forward_start(planewise_session* session,
                                                          const planewise_forward_request* request,
                                                          planewise_operation** operation);
PLANEWISE_EXPORT planewise_error* planewise_backward_start(
    planewise_session* session, const planewise_backward_request* request,
    planewise_operation** operation);

/* Ends the step's pin and rolls live amaxes. */
PLANEWISE_EXPORT planewise_error* planewise_end_step_start(planewise_session* session,
                                                           uint64_t step,
                                                           planewise_operation** operation);

/* Gives up saved operands whose backward will not come. Handles that were consumed or
 * released already are no error. */
PLANEWISE_EXPORT planewise_error* planewise_release_start(planewise_session* session,
                                                          const uint64_t* handles,
                                                          size_t handle_count,
                                                          planewise_operation** operation);

/* Waits until the operation is done or the time has passed; timeout_ms < 0: for ever, 0: only
 * looks. *done says which; an error is the operation's and *done is 1 with it. */
PLANEWISE_EXPORT planewise_error* planewise_operation_wait(planewise_operation* operation,
                                                           int64_t timeout_ms, int32_t* done);

/* Of an operation that is done and did not fail; INVALID_ARGUMENT otherwise, or for another
 * kind of operation. */
PLANEWISE_EXPORT planewise_error* planewise_operation_forward_result(
    planewise_operation* operation, planewise_forward_result* result);
PLANEWISE_EXPORT planewise_error* planewise_operation_backward_result(
    planewise_operation* operation, planewise_backward_result* result);

/* Of an operation with tensors: waits until it is done, since their memory is in use; close the
 * session first to cut that short. Of another: returns at once, and the operation runs on. */
PLANEWISE_EXPORT void planewise_operation_free(planewise_operation* operation);

/* Begin, wait, and give the result; `result` may be NULL. Where the daemon refuses an
 * operation for now and names a delay, it is begun again after that. */
PLANEWISE_EXPORT planewise_error* planewise_forward(planewise_session* session,
                                                    const planewise_forward_request* request,
                                                    planewise_forward_result* result);
PLANEWISE_EXPORT planewise_error* planewise_backward(planewise_session* session,
                                                     const planewise_backward_request* request,
                                                     planewise_backward_result* result);
PLANEWISE_EXPORT planewise_error* planewise_end_step(planewise_session* session, uint64_t step);
PLANEWISE_EXPORT planewise_error* planewise_release(planewise_session* session,
                                                    const uint64_t* handles, size_t handle_count);

#ifdef __cplusplus
}
#endif

#endif /* PLANEWISE_CLIENTS_C_PLANEWISE_H_ */
