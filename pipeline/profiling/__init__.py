"""Profiles: what harvests and runs were like, by one job in Spark, as one small file in a store.

`statement` is the job's SQL, `inputs` what it reads, `job` runs it and writes the file. How the file is read
again is `mediator/store/profile.py`.
"""
