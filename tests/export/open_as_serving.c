/* Opens a SavedModel as TensorFlow Serving does, by TensorFlow's C++ loader, without Python.

   open_as_serving FOLDER OUTPUT:INDEX ROWS LIBRARIES LIBRARY… INPUT:INDEX…

   Reads from standard input, for every INPUT and in it for every row, a native 32-bit length and that many bytes.
   Prints the OUTPUT's numbers (float32), one a line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

static void require(const TF_Status *status, const char *what) {
  if (TF_GetCode(status) != TF_OK) {
    fprintf(stderr, "%s: %s\n", what, TF_Message(status));
    exit(1);
  }
}

static TF_Output place(TF_Graph *graph, char *name) {
  char *colon = strrchr(name, ':');
  *colon = 0;
  TF_Output output = {TF_GraphOperationByName(graph, name), atoi(colon + 1)};
  if (!output.oper) {
    fprintf(stderr, "no operation %s\n", name);
    exit(1);
  }
  return output;
}

static TF_Tensor *strings(int64_t rows) {
  TF_Tensor *tensor = TF_AllocateTensor(TF_STRING, &rows, 1, rows * sizeof(TF_TString));
  TF_TString *row = TF_TensorData(tensor);
  for (int64_t i = 0; i < rows; i++) {
    uint32_t length;
    if (fread(&length, sizeof length, 1, stdin) != 1) exit(2);
    char *bytes = malloc(length + 1);
    if (fread(bytes, 1, length, stdin) != length) exit(2);
    TF_StringInit(&row[i]);
    TF_StringCopy(&row[i], bytes, length);
    free(bytes);
  }
  return tensor;
}

int main(int count, char **arguments) {
  if (count < 6) return 2;
  TF_Status *status = TF_NewStatus();
  int64_t rows = atoll(arguments[3]);
  int libraries = atoi(arguments[4]), next = 5;
  for (; next < 5 + libraries; next++) {
    TF_LoadLibrary(arguments[next], status);
    require(status, arguments[next]);
  }
  TF_Graph *graph = TF_NewGraph();
  TF_SessionOptions *options = TF_NewSessionOptions();
  const char *tags[] = {"serve"};
  TF_Session *session = TF_LoadSessionFromSavedModel(options, NULL, arguments[1], tags, 1, graph, NULL, status);
  require(status, "TF_LoadSessionFromSavedModel");

  int inputs = count - next;
  TF_Output *places = malloc(inputs * sizeof *places);
  TF_Tensor **values = malloc(inputs * sizeof *values);
  for (int i = 0; i < inputs; i++) {
    places[i] = place(graph, arguments[next + i]);
    values[i] = strings(rows);
  }
  TF_Output output = place(graph, arguments[2]);
  TF_Tensor *answer = NULL;
  TF_SessionRun(session, NULL, places, values, inputs, &output, &answer, 1, NULL, 0, NULL, status);
  require(status, "TF_SessionRun");
  if (TF_TensorType(answer) != TF_FLOAT) return 3;
  const float *numbers = TF_TensorData(answer);
  for (size_t i = 0; i < TF_TensorByteSize(answer) / sizeof(float); i++) printf("%.9g\n", numbers[i]);
  return 0;
}
