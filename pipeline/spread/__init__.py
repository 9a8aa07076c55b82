"""A query spread over Spark: the cells of its blocks in a stateful stream, its lookups in tasks beside it.

What happens goes through a folder, the *spread*, and only what is there has happened:

    askers (tasks)  --pieces-->  log/   --stream-->  cutting --envelopes-->  hosts (cells)  --answers-->  answers/
         ^                                                                        |
         +---- asks/  <---------------------- the drive, after each batch  <------+---->  given/  --> the caller

`plan.py` says what is done where, and travels to every process. `asker.py` asks the sites and writes what they answer
to the log before anybody uses it. `stream.py` reads the log for Spark, `cutting.py` makes envelopes for cells of it,
`hosting.py` keeps cells in workers and their envelopes in Spark's state. `drive.py` starts all that and knows the end;
`child.py` is a process of its own for it, `running.py` starts such processes, again where one is killed, and gives the
answers to whoever asked.
"""
