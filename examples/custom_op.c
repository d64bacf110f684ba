// Shows how to write your own operation: x^3 in f64, with a forward and a backward function. Choir
// checks the gradient against finite differences.
// Run it in this folder: make && ./custom_op
#include <choir/choir.h>

#include <stdio.h>

static choir_status cube(size_t n, const choir_buffer in[], choir_buffer *out, void *user)
{
	const double *x = (const double *) in[0].data;
	double *y = (double *) out->data;
	(void) n, (void) user;
	for (int64_t i = 0; i < choir_shape_elements(&out->shape); i++)
		y[i] = x[i] * x[i] * x[i];
	return CHOIR_OK;
}

static choir_status cube_back(size_t n, const choir_buffer in[], const choir_buffer *out,
		const choir_buffer *out_gradient, choir_buffer gradient[], void *user)
{
	const double *x = (const double *) in[0].data, *dy = (const double *) out_gradient->data;
	double *dx = (double *) gradient[0].data;
	(void) n, (void) user;
	for (int64_t i = 0; i < choir_shape_elements(&out->shape); i++)
		dx[i] = 3 * x[i] * x[i] * dy[i];
	return CHOIR_OK;
}

static choir_tensor *formula(choir_tensor *const inputs[], void *user)
{
	return choir_custom_op_apply(
			CHOIR_OPTIONS(choir_custom_op, .name = "cube", .forward = cube, .backward = cube_back),
			user, 1, inputs);
}

int main(void)
{
	choir_frame *frame = choir_frame_new(NULL);
	choir_tensor *x = choir_random_normal(frame, CHOIR_F64, CHOIR_SHAPE(3, 5), 1);
	CHOIR_CHECK(choir_check_gradient(1, &x, 0, formula, NULL));
	printf("the gradient of x^3 is right\n");
	choir_frame_free(frame);
	return 0;
}
