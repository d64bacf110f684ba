! Arrays of Fortran as tensors: shapes are reversed, contiguous memory is used as it is, and other
! arrays are copied. Failures come back as a status and Choir's text.
module steps
  use choir
  implicit none
contains
  function failing(r, user) bind(c) result(status)
    type(choir_replica), intent(inout) :: r
    type(c_ptr), value :: user
    integer(c_int) :: status
    status = CHOIR_OK
    if (choir_replica_id(r) == 1) status = choir_fail_text(CHOIR_IO, "100 % no valve" // c_null_char)
  end function

  function passing(r, user) bind(c) result(status)
    type(choir_replica), intent(inout) :: r
    type(c_ptr), value :: user
    integer(c_int) :: status
    status = choir_replica_return(r, "x" // c_null_char, choir_replica_arg(r, "x" // c_null_char))
  end function

  function stopping(e, user) bind(c) result(status)
    type(choir_fit_event), intent(in) :: e
    type(c_ptr), value :: user
    integer(c_int) :: status
    status = CHOIR_NOT_FOUND
  end function
end module

program arrays
  use steps
  implicit none
  real(c_float), target :: a(3, 4)
  real(c_double), target :: cube(2, 3, 4)
  integer(c_int32_t), target :: empty(0, 5)
  type(c_ptr) :: frame, t
  type(choir_shape), pointer :: s
  real(c_float), pointer :: x(:)
  type(choir_optimizer_options) :: wrong
  integer :: i

  a = reshape([(real(i), i = 1, 12)], [3, 4])
  cube = 2
  frame = choir_frame_new(c_null_ptr)
  t = choir_array(frame, a)
  call need_shape(t, [4, 3])
  call c_f_pointer(choir_tensor_data(t), x, [12])
  a(2, 1) = 77 ! the memory is the array's
  call need(x(2) == 77, "borrowed memory")
  t = choir_array(frame, a(1:3:2, :)) ! every other: not contiguous
  call need_shape(t, [4, 2])
  call c_f_pointer(choir_tensor_data(t), x, [8])
  a = 0
  call need(x(1) == 1 .and. x(2) == 3 .and. x(8) == 12, "a copy of a part")
  call need_shape(choir_array(frame, cube), [4, 3, 2])
  call need_shape(choir_array(frame, empty), [5, 0])

  t = choir_matmul(choir_array(frame, a), choir_array(frame, a), CHOIR_TRANSPOSED_NONE)
  call need(.not. c_associated(t), "a product that does not fit")
  call need(choir_frame_status(frame) == CHOIR_INVALID, "its status")
  call need(index(choir_text(choir_error()), "matmul") > 0, "its text: " // choir_text(choir_error()))
  call need(choir_text(c_null_ptr) == "", "no text")
  wrong%learning_rate = -1
  call need(.not. c_associated(choir_optimizer_new(CHOIR_ADAM, wrong)), "a negative rate")
  call need(choir_error_status() == CHOIR_INVALID, "its status")
  call need(choir_axis(2) == 4 .and. choir_axis(-1) == int(ishft(1, 31)), "sets of axes")
  call choir_frame_free(frame)
  call strategies()
contains
  ! A failure of one replica ends the run with its text, and the strategy stays usable.
  subroutine strategies()
    type(choir_strategy_options) :: two
    type(choir_scope) :: scope
    type(choir_model_options) :: m
    type(choir_fit_options) :: f
    type(choir_callback), target :: called
    type(c_ptr) :: s, batch, results = c_null_ptr, model
    two%replicas = 2
    s = choir_mirrored_strategy_new(two)
    batch = choir_values_new(s)
    call choir_must(choir_values_split(batch, "x" // c_null_char, choir_array(choir_values_frame(batch), cube)))
    call need(choir_strategy_run(s, c_funloc(failing), c_null_ptr, batch, results) == CHOIR_IO, "a failing replica")
    call need(index(choir_text(choir_error()), "100 % no valve") > 0, "its text: " // choir_text(choir_error()))
    call choir_must(choir_strategy_run(s, c_funloc(passing), c_null_ptr, batch, results))
    call need_shape(choir_value_local(choir_values_find(results, "x" // c_null_char), 1_c_int), [2, 3, 2])
    call need(choir_strategy_run(s, c_null_funptr, c_null_ptr, batch, results) == CHOIR_INVALID, "no function")
    call choir_must(choir_scope_enter(scope, s))
    m%layer = choir_dense_new("d" // c_null_char, 2_c_int64_t, 2_c_int64_t, CHOIR_LINEAR)
    m%optimizer = choir_optimizer_new(CHOIR_ADAM)
    m%loss = c_funloc(choir_mean_squared_error)
    model = choir_model_new(m)
    call choir_must_have(model)
    call choir_must(choir_scope_exit(scope))
    called%batch_end = c_funloc(stopping)
    f%callbacks = c_loc(called)
    f%n_callbacks = 1
    call need(choir_fit(model, dataset(s), f) == CHOIR_NOT_FOUND, "a failing callback")
    call need(index(choir_text(choir_error()), "batch 1") > 0, "its place: " // choir_text(choir_error()))
    call choir_must(choir_evaluate(model, dataset(s)))
    call choir_values_free(results)
    call choir_values_free(batch)
    call choir_strategy_free(s)
  end subroutine

  function dataset(s)
    type(c_ptr), intent(in) :: s
    type(c_ptr) :: dataset
    real(c_float), target :: x(2, 4)
    character(kind=c_char), target :: names(2, 2)
    type(choir_column), target :: columns(2)
    integer :: k
    x = 1
    names = reshape(["x", c_null_char, "y", c_null_char], [2, 2])
    do k = 1, 2
      columns(k)%name = c_loc(names(1, k))
      columns(k)%dtype = CHOIR_F32
      columns(k)%shape = choir_shape_of([2])
      columns(k)%data = c_loc(x)
    end do
    dataset = choir_strategy_distribute_dataset(s, choir_dataset_batch(choir_memory_dataset_new(4_c_int64_t, &
      2_c_size_t, columns, .true._c_bool), 4_c_int64_t))
  end function

  subroutine need(truth, what)
    logical, intent(in) :: truth
    character(*), intent(in) :: what
    if (truth) return
    print *, "failed: ", what
    error stop 1
  end subroutine

  subroutine need_shape(tensor, dims)
    type(c_ptr), intent(in) :: tensor
    integer, intent(in) :: dims(:)
    call choir_must_have(tensor)
    call c_f_pointer(choir_tensor_shape(tensor), s)
    call need(s%rank == size(dims) .and. all(s%dim(1:size(dims)) == dims), "a shape")
  end subroutine
end program
